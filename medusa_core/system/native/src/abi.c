/* What Python checks before it calls anything: that both sides mean the same structures. */

#include <stdint.h>

#include "decoder.h"
#include "growth.h"
#include "heads.h"
#include "phrases.h"

enum { ABI_VERSION = 15 }; /* as in structs.py */

int32_t abi(int32_t *sizes, int32_t count) {
    const int32_t known[] = {sizeof(Pool),      sizeof(Linear),  sizeof(Up),         sizeof(Adapter),
                             sizeof(Positions), sizeof(Experts), sizeof(States),     sizeof(Recurrence),
                             sizeof(Block),     sizeof(Decoder), sizeof(LayerRows),  sizeof(Cache),
                             sizeof(Sequence),  sizeof(Pass),    sizeof(Heads),      sizeof(Phrases),
                             sizeof(Node),      sizeof(Candidates), sizeof(Growth)};
    int32_t num_known = sizeof known / sizeof *known;
    for (int32_t i = 0; i < count && i < num_known; i++) sizes[i] = known[i];
    return ABI_VERSION;
}
