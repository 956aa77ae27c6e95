/* A thread pool: the caller lends its threads by run_worker().

   Tasks are claimed one by one, so a thread that is descheduled delays one task, not a share of the
   job. */

#ifndef MEDUSA_POOL_H
#define MEDUSA_POOL_H

#include "abi.h"

/* Compute tasks 0 … count − 1 with the threads that are available; `pool` may be NULL. */
void parallel_for(Pool *pool, Task *task, void *job, int32_t count);

/* Mark the start or end of a pass, during which waiting threads go on spinning; `pool` may be NULL. */
void set_busy(Pool *pool, int32_t busy);

#endif
