/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that others wrote. Terminals obey C0, DEL, and C1, which is U+0080 to U+009F: two bytes in
 * UTF-8, and one byte to a terminal that does not read UTF-8. */
#include "core/core.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int text_character(const char *text)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } kinds[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *at = (const unsigned char *)text;
    for (int more = 0; more < (int)LENGTH(kinds); more++) {
        if ((at[0] & kinds[more].mask) != kinds[more].lead)
            continue;
        uint32_t code = at[0] & (unsigned char)~kinds[more].mask;
        for (int i = 1; i <= more; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (at[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code < 0xe000;
        return code >= kinds[more].least && code < 0x110000 && !surrogate ? more + 1 : 0;
    }
    return 0;
}

bool text_control(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    return at[0] < ' ' || at[0] == 0x7f || (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0);
}

void text_clean(char *text)
{
    while (*text) {
        int length = text_character(text);
        bool blank = *text == '\n' || *text == '\t', bad = !length || text_control(text);
        for (int i = 0; i < length || i < 1; i++, text++)
            if (bad)
                *text = blank ? ' ' : '?';
    }
}

const char *text_style(FILE *out, enum text_style style)
{
    static const char *const codes[] = {[TEXT_PLAIN] = "\033[0m",
                                        [TEXT_BOLD] = "\033[1m",
                                        [TEXT_GOOD] = "\033[32m",
                                        [TEXT_BAD] = "\033[31m",
                                        [TEXT_DOUBT] = "\033[33m"};
    const char *terminal = getenv("TERM"), *none = getenv("NO_COLOR");
    bool shows = isatty(fileno(out)) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
    return shows && (!none || !*none) ? codes[style] : "";
}
