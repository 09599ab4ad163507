/* check ends the program with a message if a condition does not hold. */
#ifndef CONTIV_TEST_CHECK_H
#define CONTIV_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define check(cond, ...)                                                                                                         \
  do                                                                                                                             \
    if (!(cond))                                                                                                                 \
      {                                                                                                                          \
	fprintf (stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);                                                              \
	fprintf (stderr, " " __VA_ARGS__);                                                                                        \
	fprintf (stderr, "\n");                                                                                                  \
	abort ();                                                                                                                \
      }                                                                                                                          \
  while (0)

#endif
