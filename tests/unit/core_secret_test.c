/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 and HMAC by the published examples, and which files may hold a secret. */
#include "core/secret.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_digest(const unsigned char digest[SHA256_BYTES], const char *digits)
{
    char text[2 * SHA256_BYTES + 1];
    for (size_t i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, digits);
}

/* In pieces of every kind. */
static void check_sha(const char *bytes, size_t length, const char *digits)
{
    static const size_t pieces[] = {1, 3, 55, 56, 63, 64, 65, 1000000};
    for (size_t i = 0; i < LENGTH(pieces); i++) {
        unsigned char digest[SHA256_BYTES];
        struct sha256 sha;
        sha256_begin(&sha);
        for (size_t at = 0; at < length; at += pieces[i])
            sha256_add(&sha, bytes + at, length - at < pieces[i] ? length - at : pieces[i]);
        sha256_end(&sha, digest);
        assert_digest(digest, digits);
    }
}

static void sha256_is_that_of_the_standard(void **state)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static char million[1000000];
    (void)state;
    memset(million, 'a', sizeof million);
    check_sha("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha(two_blocks, strlen(two_blocks),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_sha(million, sizeof million,
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* key and data: a text, or a byte so many times. */
struct example {
    const char *key, *data;
    size_t key_length, data_length;
    const char *digits;
};

static void spread(char *to, const char *text, size_t length)
{
    if (strlen(text) == 1)
        memset(to, text[0], length);
    else
        memcpy(to, text, length);
}

static void hmac_is_that_of_rfc_4231(void **state)
{
    static const char counting[] = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
                                   "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19";
    static const char long_key[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char long_both[] =
        "This is a test using a larger than block-size key and a larger than block-size data. "
        "The key needs to be hashed before being used by the HMAC algorithm.";
    static const struct example examples[] = {
        {"\x0b", "Hi There", 20, 8,
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", "what do ya want for nothing?", 4, 28,
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {"\xaa", "\xdd", 20, 50,
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {counting, "\xcd", 25, 50,
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {"\xaa", long_key, 131, sizeof long_key - 1,
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {"\xaa", long_both, 131, sizeof long_both - 1,
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(examples); i++) {
        const struct example *e = &examples[i];
        char key[200], data[200];
        unsigned char code[SHA256_BYTES];
        struct hmac hmac;
        spread(key, e->key, e->key_length);
        spread(data, e->data, e->data_length);
        hmac_begin(&hmac, key, e->key_length);
        hmac_add(&hmac, data, e->data_length / 2);
        hmac_add(&hmac, data + e->data_length / 2, e->data_length - e->data_length / 2);
        hmac_end(&hmac, code);
        assert_digest(code, e->digits);
    }
}

static void comparing_finds_every_bit(void **state)
{
    unsigned char a[SHA256_BYTES] = {0}, b[SHA256_BYTES] = {0};
    (void)state;
    assert_true(bytes_equal(a, b, sizeof a));
    for (unsigned bit = 0; bit < 8 * sizeof a; bit++) {
        b[bit / 8] ^= (unsigned char)(1U << bit % 8);
        assert_false(bytes_equal(a, b, sizeof a));
        b[bit / 8] = 0;
    }
}

/* ---- files ---- */

static const char digits[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
static char folder[64], path[96], elsewhere[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-secret-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/secret", folder);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(elsewhere);
    return rmdir(folder);
}

static void write_file(const char *text, size_t length, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && write(fd, text, length) == (ssize_t)length);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void assert_refused(const char *name, const char *reason)
{
    struct secret secret;
    assert_true(secret_read(&secret, name) < 0);
    assert_contains(fail_reason(), reason);
    assert_contains(fail_reason(), name);
}

static void a_secret_is_read_from_a_file_of_its_owner(void **state)
{
    static const mode_t modes[] = {0600, 0400};
    (void)state;
    for (size_t i = 0; i < LENGTH(modes); i++) {
        struct secret secret = {0};
        char text[SECRET_TEXT];
        write_file(digits, strlen(digits) - (i == 1), modes[i]); /* the newline may be missing */
        assert_int_equal(secret_read(&secret, path), 0);
        for (unsigned at = 0; at < SECRET_BYTES; at++)
            assert_int_equal(secret.bytes[at], at);
        secret_text(&secret, text);
        assert_memory_equal(text, digits, SECRET_TEXT);
    }
}

static void a_secret_that_others_may_use_is_refused(void **state)
{
    static const mode_t modes[] = {0644, 0640, 0601, 0620, 0666};
    (void)state;
    for (size_t i = 0; i < LENGTH(modes); i++) {
        char mode[32];
        write_file(digits, strlen(digits), modes[i]);
        snprintf(mode, sizeof mode, "has mode %04o", (unsigned)modes[i]);
        assert_refused(path, mode);
        assert_contains(fail_reason(), "chmod 600");
    }
}

static void a_secret_of_another_user_is_refused(void **state)
{
    (void)state;
    write_file(digits, strlen(digits), 0600);
    if (geteuid() || chown(path, 65534, 65534))
        skip();
    assert_refused(path, "belongs to another user");
}

static void what_is_no_regular_file_is_refused_and_not_waited_for(void **state)
{
    (void)state;
    write_file(digits, strlen(digits), 0600);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_refused(path, "is a symbolic link, which is not followed");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, "is not a regular file");
    unlink(path);
    assert_refused(path, "No such file");
    assert_refused(folder, "is not a regular file");
}

static void a_file_that_holds_no_secret_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "secret\n",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1\n",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fa",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g\n",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e\n\n\n",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\n"};
    (void)state;
    for (size_t i = 0; i < LENGTH(texts); i++) {
        write_file(texts[i], strlen(texts[i]), 0600);
        assert_refused(path, "is not 64 hexadecimal digits");
        assert_contains(fail_reason(), "weft keygen");
    }
}

static void a_secret_may_come_on_a_descriptor(void **state)
{
    struct secret secret = {0};
    char name[16];
    (void)state;
    int fd = memfd_create("secret", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, digits, strlen(digits)) == (ssize_t)strlen(digits));
    snprintf(name, sizeof name, "fd:%d", fd);
    assert_int_equal(fchmod(fd, 0666), 0);
    assert_refused(name, "has mode 0666");
    fd = memfd_create("secret", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, digits, strlen(digits)) == (ssize_t)strlen(digits));
    assert_int_equal(fchmod(fd, 0600), 0);
    snprintf(name, sizeof name, "fd:%d", fd);
    assert_int_equal(secret_read(&secret, name), 0);
    assert_int_equal(secret.bytes[31], 31);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* it is closed */
    assert_refused(name, "Bad file descriptor");
    assert_refused("fd:x", "a descriptor is a number");
}

static void two_new_secrets_differ(void **state)
{
    struct secret a, b;
    (void)state;
    assert_int_equal(secret_make(&a), 0);
    assert_int_equal(secret_make(&b), 0);
    assert_false(bytes_equal(&a, &b, sizeof a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_is_that_of_the_standard),
        cmocka_unit_test(hmac_is_that_of_rfc_4231),
        cmocka_unit_test(comparing_finds_every_bit),
        cmocka_unit_test(a_secret_is_read_from_a_file_of_its_owner),
        cmocka_unit_test(a_secret_that_others_may_use_is_refused),
        cmocka_unit_test(a_secret_of_another_user_is_refused),
        cmocka_unit_test(what_is_no_regular_file_is_refused_and_not_waited_for),
        cmocka_unit_test(a_file_that_holds_no_secret_is_refused),
        cmocka_unit_test(a_secret_may_come_on_a_descriptor),
        cmocka_unit_test(two_new_secrets_differ),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
