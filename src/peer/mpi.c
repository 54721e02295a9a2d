/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI module, compiled once for every MPI. Only MPI_Init and MPI_Finalize block: sends use a
 * few buffers, and one receive is always posted. A probe and a blocking receive would not work: a
 * long message arrives only when its sender makes progress. */
#include "peer/mpi.h"
#include "peer/peer.h"

#include <errno.h>
#include <mpi.h>
#include <string.h>

#if defined(OPEN_MPI)
#define MPI_NAME "Open MPI"
#elif defined(MPICH)
#define MPI_NAME "MPICH"
#else
#define MPI_NAME "MPI"
#endif

enum { BUFFERS = 8, DROPS = 64, TAG = 0x3ef7 };

/* There is one MPI per process, so this is static. */
static struct {
    const struct mpi_host *host;
    int other;
    bool listening, parting;
    MPI_Request in, barrier;
    MPI_Request out[BUFFERS]; /* MPI_REQUEST_NULL: the buffer is free */
    char in_bytes[CARRIER_MAX];
    char out_bytes[BUFFERS][CARRIER_MAX];
} mpi;

/* MPI's own text for an error. */
static int said(const char *call, int error)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    text[strcspn(text, "\n")] = '\0';
    return mpi.host->fail(-EIO, MPI_NAME ": %s: %.300s", call, text);
}

static int mpi_begin(int *size, int *rank)
{
    int provided = MPI_THREAD_SINGLE, before = 0;
    MPI_Initialized(&before);
    if (before)
        return mpi.host->fail(-EBUSY, MPI_NAME " was started before, and can be only once");
    /* Heartbeats may come from another thread, while this one waits for it. */
    int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
    if (error)
        return said("MPI_Init_thread", error);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    mpi.other = 1 - *rank;
    for (int i = 0; i < BUFFERS; i++)
        mpi.out[i] = MPI_REQUEST_NULL;
    mpi.in = mpi.barrier = MPI_REQUEST_NULL;
    return provided >= MPI_THREAD_SERIALIZED
               ? 0
               : mpi.host->fail(-ENOTSUP, MPI_NAME " here allows calls from one thread only");
}

/* 1 if the request is done; also if it was never started. */
static int done(MPI_Request *request, MPI_Status *status)
{
    int flag = 0;
    int error = MPI_Test(request, &flag, status);
    return error ? said("MPI_Test", error) : flag;
}

static int mpi_publish(void *arg, const void *bytes, size_t length)
{
    MPI_Status ignored;
    (void)arg;
    if (length > CARRIER_MAX)
        return mpi.host->fail(-EMSGSIZE, "a message of %zu bytes, the limit is %d", length,
                              (int)CARRIER_MAX);
    for (int i = 0; i < BUFFERS; i++) {
        int free = done(&mpi.out[i], &ignored);
        if (free < 0)
            return free;
        if (!free)
            continue;
        memcpy(mpi.out_bytes[i], bytes, length);
        int error = MPI_Isend(mpi.out_bytes[i], (int)length, MPI_BYTE, mpi.other, TAG,
                              MPI_COMM_WORLD, &mpi.out[i]);
        return error ? said("MPI_Isend", error) : 0;
    }
    return -EAGAIN;
}

static int listen_again(void)
{
    /* The previous request is done, by MPI_Test; the checker does not see that. */
    /* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
    int error =
        MPI_Irecv(mpi.in_bytes, CARRIER_MAX, MPI_BYTE, mpi.other, TAG, MPI_COMM_WORLD, &mpi.in);
    /* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */
    mpi.listening = !error;
    return error ? said("MPI_Irecv", error) : 0;
}

static int mpi_receive(void *arg, void *bytes, size_t room, size_t *length)
{
    MPI_Status status;
    int count = 0;
    (void)arg;
    int got = mpi.listening ? 0 : listen_again();
    if (!got)
        got = done(&mpi.in, &status);
    if (got <= 0)
        return got;
    mpi.listening = false;
    int error = MPI_Get_count(&status, MPI_BYTE, &count);
    if (error || count < 0 || (size_t)count > room)
        return mpi.host->fail(-EPROTO, MPI_NAME ": a message of %d bytes, the limit is %zu", count,
                              room);
    memcpy(bytes, mpi.in_bytes, (size_t)count);
    *length = (size_t)count;
    return 1;
}

/* The other end's last messages must be received, or its sends never complete. */
static int drop_arrivals(void)
{
    char bytes[CARRIER_MAX];
    size_t length;
    int got = 1;
    for (int i = 0; got == 1 && i < DROPS; i++)
        got = mpi_receive(NULL, bytes, sizeof bytes, &length);
    return got < 0 ? got : 0;
}

static int mpi_part(void)
{
    MPI_Status ignored;
    int status = drop_arrivals();
    if (status)
        return status;
    for (int i = 0; i < BUFFERS; i++)
        if ((status = done(&mpi.out[i], &ignored)) != 1)
            return status;
    if (!mpi.parting) {
        int error = MPI_Ibarrier(MPI_COMM_WORLD, &mpi.barrier);
        if (error)
            return said("MPI_Ibarrier", error);
        mpi.parting = true;
    }
    return done(&mpi.barrier, &ignored);
}

static void mpi_finish(void)
{
    if (mpi.listening) {
        MPI_Cancel(&mpi.in);
        MPI_Request_free(&mpi.in);
        mpi.listening = false;
    }
    MPI_Finalize();
}

static const struct mpi_module module = {.abi = MPI_MODULE_ABI,
                                         .name = MPI_NAME,
                                         .begin = mpi_begin,
                                         .publish = mpi_publish,
                                         .receive = mpi_receive,
                                         .part = mpi_part,
                                         .finish = mpi_finish};

const struct mpi_module *weft_mpi(const struct mpi_host *host)
{
    if (host->abi != MPI_MODULE_ABI)
        return NULL;
    mpi.host = host;
    return &module;
}
