/* A driver of NVIDIA's as far as avahi-gpu asks it: one card, as the file says that $FAKE_NVML or /etc/fake-nvml
 * is: "driver;cuda;name;MiB;major;minor;MiB that are free". Without the file the driver is not loaded. Nothing newer
 * than glibc 2.17 is called, so that it runs in machines of older releases than the one that compiles it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_LOADED 9
#define FIELDS 7

static char text[512];
static char *field[FIELDS];

static int look(void) {
  const char *path = getenv("FAKE_NVML");
  int file = open(path ? path : "/etc/fake-nvml", O_RDONLY);
  if (file < 0) {
    const char *asked = getenv("FAKE_NVML_ASKED"); /* made when it was asked in vain */
    if (asked) close(open(asked, O_WRONLY | O_CREAT, 0644));
    return NOT_LOADED;
  }
  long size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return NOT_LOADED;
  text[size] = 0;
  char *at = text;
  for (int n = 0; n < FIELDS; n++) {
    field[n] = at;
    while (*at && *at != ';' && *at != '\n') at++;
    if (*at) *at++ = 0;
  }
  return 0;
}

static long number(const char *word) {
  long value = 0;
  while (*word >= '0' && *word <= '9') value = value * 10 + *word++ - '0';
  return value;
}

static int copy(const char *word, char *to, unsigned size) {
  strncpy(to, word, size - 1);
  to[size - 1] = 0;
  return 0;
}

int nvmlInitWithFlags(unsigned flags) { return look(); }
int nvmlInit_v2(void) { return look(); }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *to, unsigned size) { return copy(field[0], to, size); }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = (int)number(field[1]); return 0; }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **to) { *to = text; return 0; }
int nvmlDeviceGetName(void *card, char *to, unsigned size) { return copy(field[2], to, size); }
int nvmlDeviceGetMemoryInfo(void *card, unsigned long long *to) {
  if (look()) return NOT_LOADED; /* the file may say something else by now */
  to[0] = (unsigned long long)number(field[3]) << 20;
  to[1] = (unsigned long long)number(field[6]) << 20;
  to[2] = to[0] - to[1];
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *card, int *major, int *minor) {
  *major = (int)number(field[4]);
  *minor = (int)number(field[5]);
  return 0;
}
