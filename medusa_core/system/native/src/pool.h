/* Work shared among threads that the caller lends: they come in by `serve` and leave by themselves.

   Pieces are claimed one by one, so a thread that is put to sleep delays one piece, not a share. */

#ifndef MEDUSA_POOL_H
#define MEDUSA_POOL_H

#include <stdatomic.h>
#include <stdint.h>

typedef void Piece(void *job, int32_t index, int32_t worker);

typedef struct {
    Piece *piece;
    void *job;
    _Atomic uint64_t claims; /* which job it is, above; how many pieces nobody has claimed, below */
    _Atomic int32_t done;
    _Atomic int32_t closed;
    _Atomic int32_t busy; /* a pass is under way: helpers stay, however long the caller works alone */
} Pool;

/* Do pieces 0 … count − 1 with whatever helpers there are; `pool` may be NULL. */
void share(Pool *pool, Piece *piece, void *job, int32_t count);

/* A pass begins, or ends; `pool` may be NULL. */
void be_busy(Pool *pool, int32_t busy);

/* Help as worker 1, 2, … until nothing has come for a while, or the pool is closed. */
void serve(Pool *pool, int32_t worker);

#endif
