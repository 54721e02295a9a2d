/* SPDX-License-Identifier: BSD-3-Clause */
/* What an end does not do at the word of another one: load a module that is none of ours, offer a
 * fabric that does not protect its memory, listen on another network. Looks at names only; nothing
 * is loaded. */
#include "fabric/choose.h"
#include "fabric/ip.h"

#define FABRIC_BUILT_IN(name, sources, guarded, ...)                 {#name, guarded},
#define FABRIC_MODULE(name, package, library, sources, guarded, ...) {#name, guarded},
static const struct {
    const char *name, *guarded;
} ours[] = {
#include "fabric/fabrics.def"
};
#undef FABRIC_MODULE
#undef FABRIC_BUILT_IN

/* Is the word, of this length, one of those in the list? */
static bool in_list(const char *list, const char *word, size_t length)
{
    for (list += strspn(list, " "); *list; list += strspn(list, " ")) {
        size_t one = strcspn(list, " ");
        if (one == length && strncmp(list, word, length) == 0)
            return true;
        list += one;
    }
    return false;
}

static const char *guarded_of(const char *text)
{
    for (size_t i = 0; i < LENGTH(ours); i++)
        if (in_list(ours[i].name, text, strcspn(text, ":")))
            return ours[i].guarded;
    return NULL;
}

bool fabric_ours(const char *text)
{
    return guarded_of(text) != NULL;
}

bool fabric_guarded(const char *text)
{
    const char *guarded = guarded_of(text), *colon = strchr(text, ':');
    if (!guarded)
        return false;
    if (strcmp(guarded, "*") == 0)
        return true;
    return colon && in_list(guarded, colon + 1, strcspn(colon + 1, "/"));
}

void fabric_guarded_names(char *text, size_t room)
{
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < LENGTH(ours); i++) {
        const char *list = ours[i].guarded;
        while (*list && used < room) {
            size_t one = strcspn(list, " ");
            bool all = strcmp(list, "*") == 0;
            used += (size_t)snprintf(text + used, room - used, "%s%s%s%.*s", used ? ", " : "",
                                     ours[i].name, all ? "" : ":", all ? 0 : (int)one, list);
            list += one + strspn(list + one, " ");
        }
    }
}

bool fabric_elsewhere(const char *text, const char *here, char *carrier, size_t room)
{
    const char *slash = strchr(text, '/');
    *carrier = '\0';
    if (!slash || !*here || !if_nametoindex(slash + 1))
        return false;
    ip_interface(here, carrier, room);
    return strcmp(carrier, slash + 1) != 0;
}
