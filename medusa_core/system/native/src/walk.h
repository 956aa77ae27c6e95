/* Down a tree of tokens by the best of each row. */

#ifndef MEDUSA_WALK_H
#define MEDUSA_WALK_H

#include <stdint.h>

/* From the root on, while a child of a node holds the token that is the best of its row. Returns how
   many nodes were met, the root included; 0 if the best of one of them is no finite number.
   scores: [nodes, columns]; token_ids, parents: [nodes]
   walked: takes the nodes, then the best token of each; the last is the one that no child holds.
   [2 · nodes]
   read: takes what `read_choices` says of them, or NULL. */
int32_t walk_best(const float *scores, int64_t columns, const int32_t *token_ids,
                  const int32_t *parents, int32_t nodes, int32_t *walked, float *read);

#endif
