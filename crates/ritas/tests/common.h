/* What the test programs share. */
#ifndef COMMON_H
#define COMMON_H

#include "ritas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program unless it is so, and says what the library said last. */
#define EXPECT(condition)                                                                     \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            printf("line %d: not %s (%d: %s)\n", __LINE__, #condition, ritas_error(), ritas_error_message()); \
            fflush(stdout);                                                                   \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

/* A failure of this kind. */
#define FAILS(call, code) EXPECT((call) == RITAS_FAILURE && ritas_error() == (code) && *ritas_error_message() != 0)

/* Wrong use; see misuse.c. */
int misuse(void);

#endif
