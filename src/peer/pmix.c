/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-pmix.so: the card through PMIx. */
#include "peer/launchers.h"

#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static const struct pmix_host *host;
static pmix_proc_t self;

static int wrong(const char *what, pmix_status_t code)
{
    return host->fail(code == PMIX_ERR_TIMEOUT ? -ETIMEDOUT : -EIO, "%s: %s", what,
                      PMIx_Error_string(code));
}

static int begin(unsigned *rank, unsigned *size)
{
    pmix_proc_t all;
    pmix_value_t *got = NULL;
    pmix_status_t code = PMIx_Init(&self, NULL, 0);
    if (code != PMIX_SUCCESS)
        return wrong("PMIx_Init", code);
    PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
    code = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &got);
    if (code != PMIX_SUCCESS)
        return wrong("PMIx_Get of the job's size", code);
    *size = got->data.uint32;
    *rank = self.rank;
    PMIX_VALUE_RELEASE(got);
    return 0;
}

static int publish(char *card)
{
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_STRING;
    value.data.string = card; /* copied */
    pmix_status_t code = PMIx_Put(PMIX_GLOBAL, "weft.card", &value);
    if (code == PMIX_SUCCESS)
        code = PMIx_Commit();
    return code == PMIX_SUCCESS ? 0 : wrong("PMIx_Put", code);
}

static int take(const pmix_value_t *value, char *card, size_t room)
{
    size_t length =
        value->type == PMIX_STRING && value->data.string ? strlen(value->data.string) : room;
    if (length >= room)
        return host->fail(-EPROTO, "PMIx has another value than a card");
    memcpy(card, value->data.string, length + 1);
    return 0;
}

/* A launcher may not know of PMIX_TIMEOUT, and wait for a rank that is cut off without end. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
    pmix_status_t code;
} fence = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, PMIX_SUCCESS};

static void fence_over(pmix_status_t code, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&fence.lock);
    fence.code = code;
    fence.done = true;
    pthread_cond_signal(&fence.over);
    pthread_mutex_unlock(&fence.lock);
}

static int fence_all(const pmix_proc_t *all, const pmix_info_t info[2], int wait_s)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += wait_s;
    pmix_status_t code = PMIx_Fence_nb(all, 1, info, 2, fence_over, NULL);
    if (code == PMIX_OPERATION_SUCCEEDED)
        return 0;
    if (code != PMIX_SUCCESS)
        return wrong("PMIx_Fence", code);
    pthread_mutex_lock(&fence.lock);
    while (!fence.done && !pthread_cond_timedwait(&fence.over, &fence.lock, &until))
        continue;
    bool done = fence.done;
    code = fence.code;
    pthread_mutex_unlock(&fence.lock);
    if (!done)
        return host->fail(-ETIMEDOUT, "PMIx_Fence: not all ranks came within %d s", wait_s);
    return code == PMIX_SUCCESS ? 0 : wrong("PMIx_Fence", code);
}

static int share(char *card, size_t room, bool root, int wait_s)
{
    pmix_proc_t all, first;
    pmix_info_t info[2];
    pmix_value_t *got = NULL;
    bool yes = true;
    int status = root ? publish(card) : 0;
    if (status)
        return status;
    PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&first, self.nspace, 0);
    PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &wait_s, PMIX_INT);
    status = fence_all(&all, info, wait_s);
    if (status || root)
        return status;
    pmix_status_t code = PMIx_Get(&first, "weft.card", NULL, 0, &got);
    if (code != PMIX_SUCCESS)
        return wrong("PMIx_Get", code);
    status = take(got, card, room);
    PMIX_VALUE_RELEASE(got);
    return status;
}

static void end(void)
{
    PMIx_Finalize(NULL, 0);
}

static const struct pmix_module module = {
    .abi = PMIX_MODULE_ABI, .begin = begin, .share = share, .end = end};

__attribute__((visibility("default"))) const struct pmix_module *
weft_pmix(const struct pmix_host *given)
{
    host = given;
    return given->abi == PMIX_MODULE_ABI ? &module : NULL;
}
