/* Preloaded into VPP 25.10: see ../README.md. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LIMIT 30.0 /* seconds that a worker may be late, in addition to VPP's limit of 1 s */
#define PAUSE 50000 /* microseconds */

static void (*os_panic) (void);

static double
seconds (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* late replaces os_panic in libvlib. VPP's main thread calls it repeatedly while it waits for a worker. */
static void
late (void)
{
  static double first, last;
  double now = seconds ();
  if (now - last > 2)
    first = now; /* a new wait has begun */
  last = now;
  if (now - first > LIMIT)
    os_panic ();
  usleep (PAUSE); /* so that the worker gets the processor */
}

typedef struct
{
  ElfW (Addr) base;
  const ElfW (Sym) * symbols;
  const char *names;
  uintptr_t relro, relro_end;
} object_t;

/* redirect replaces the address in one entry of the global offset table. */
static void
redirect (const object_t *o, uintptr_t place)
{
  uintptr_t page = (uintptr_t) sysconf (_SC_PAGESIZE), start = place & ~(page - 1);
  if (mprotect ((void *) start, page, PROT_READ | PROT_WRITE))
    return;
  *(void (**) (void)) place = late;
  if (place >= o->relro && place < o->relro_end)
    mprotect ((void *) start, page, PROT_READ);
}

static void
scan (const object_t *o, const ElfW (Rela) * r, size_t size)
{
  for (size_t i = 0; r && i < size / sizeof (*r); i++)
    {
      size_t symbol = ELF64_R_SYM (r[i].r_info);
      if (symbol && !strcmp (o->names + o->symbols[symbol].st_name, "os_panic"))
	redirect (o, o->base + r[i].r_offset);
    }
}

static int
look (struct dl_phdr_info *info, size_t size, void *unused)
{
  (void) size, (void) unused;
  if (!info->dlpi_name || !strstr (info->dlpi_name, "/libvlib.so"))
    return 0;
  object_t o = { .base = info->dlpi_addr };
  const ElfW (Dyn) *d = NULL;
  for (int i = 0; i < info->dlpi_phnum; i++)
    {
      const ElfW (Phdr) *h = &info->dlpi_phdr[i];
      if (h->p_type == PT_DYNAMIC)
	d = (const void *) (o.base + h->p_vaddr);
      if (h->p_type == PT_GNU_RELRO)
	{
	  o.relro = o.base + h->p_vaddr;
	  o.relro_end = o.relro + h->p_memsz;
	}
    }
  const ElfW (Rela) *plt = NULL, *rela = NULL;
  size_t plt_size = 0, rela_size = 0;
  for (; d && d->d_tag != DT_NULL; d++)
    {
      const void *p = (const void *) (d->d_un.d_ptr < o.base ? o.base + d->d_un.d_ptr : d->d_un.d_ptr);
      switch (d->d_tag)
	{
	case DT_SYMTAB:
	  o.symbols = p;
	  break;
	case DT_STRTAB:
	  o.names = p;
	  break;
	case DT_JMPREL:
	  plt = p;
	  break;
	case DT_PLTRELSZ:
	  plt_size = d->d_un.d_val;
	  break;
	case DT_RELA:
	  rela = p;
	  break;
	case DT_RELASZ:
	  rela_size = d->d_un.d_val;
	  break;
	}
    }
  if (o.symbols && o.names)
    {
      scan (&o, plt, plt_size);
      scan (&o, rela, rela_size);
    }
  return 1;
}

/* start redirects os_panic. When it runs, all libraries that VPP is linked with are loaded. */
__attribute__ ((constructor)) static void
start (void)
{
  os_panic = (void (*) (void)) dlsym (RTLD_DEFAULT, "os_panic");
  if (os_panic)
    dl_iterate_phdr (look, NULL);
}
