// Asks the user and fetches Python; the window's program and the terminal's have their own.
#ifndef FETCH_H
#define FETCH_H
#include <windows.h>

// Returns 0 where the user doesn't want it or it can't be had, which has been said by then.
int fetch_python(void);

// Say what is wrong.
void complain(const wchar_t *message);

#endif
