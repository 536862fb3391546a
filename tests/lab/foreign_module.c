/* An NSS module of another program, as far as hosts go: compiled with -DNAME=docker it is libnss_docker.so.2.
   It knows nobody and says NOTFOUND; with -DFORGES it has one address for every name, as a resolver has behind
   a name server that answers everything. */

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <nss.h>
#include <string.h>
#include <sys/socket.h>

#define PASTE(a, b, c) a##b##c
#define JOIN(a, b, c) PASTE(a, b, c)
#define FUNCTION(name, what) JOIN(_nss_, name, what)
#define FORGED "198.51.100.66"

#ifdef FORGES
static enum nss_status answer(const char *name, int family, struct hostent *result, char *buffer, size_t size,
                              int *errnop, int *h_errnop)
{
    size_t length = strlen(name) + 1;
    char *base = (char *)(((unsigned long)buffer + 15) & ~15ul);
    char **pointers = (char **)base;
    if (family != AF_INET) {
        *errnop = ENOENT;
        *h_errnop = NO_DATA;
        return NSS_STATUS_NOTFOUND;
    }
    if ((size_t)(base - buffer) + 4 * sizeof(char *) + 4 + length > size) {
        *errnop = ERANGE;
        *h_errnop = NETDB_INTERNAL;
        return NSS_STATUS_TRYAGAIN;
    }
    pointers[1] = NULL;
    pointers[0] = (char *)(pointers + 2);
    inet_pton(AF_INET, FORGED, pointers[0]);
    result->h_name = pointers[0] + 4;
    memcpy(result->h_name, name, length);
    result->h_aliases = pointers + 1;
    result->h_addrtype = AF_INET;
    result->h_length = 4;
    result->h_addr_list = pointers;
    return NSS_STATUS_SUCCESS;
}
#else
static enum nss_status answer(const char *name, int family, struct hostent *result, char *buffer, size_t size,
                              int *errnop, int *h_errnop)
{
    *errnop = ENOENT;
    *h_errnop = HOST_NOT_FOUND;
    return NSS_STATUS_NOTFOUND;
}
#endif

enum nss_status FUNCTION(NAME, _gethostbyname2_r)(const char *name, int family, struct hostent *result,
                                                 char *buffer, size_t size, int *errnop, int *h_errnop)
{
    return answer(name, family, result, buffer, size, errnop, h_errnop);
}

enum nss_status FUNCTION(NAME, _gethostbyname_r)(const char *name, struct hostent *result, char *buffer,
                                                size_t size, int *errnop, int *h_errnop)
{
    return answer(name, AF_INET, result, buffer, size, errnop, h_errnop);
}
