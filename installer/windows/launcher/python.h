// The Python that runs launch.py: a copy of its own that uv fetches for this user.
#ifndef PYTHON_H
#define PYTHON_H
#include <windows.h>

// The newest complete Python of ours.
// name: python.exe or pythonw.exe; path: gets it, LONGEST characters.
// Returns 0 where there is none.
int find_python(const wchar_t *name, wchar_t *path);

// The mirror that is used: UV_PYTHON_INSTALL_MIRROR, else the one remembered, else an empty text.
void known_mirror(wchar_t *mirror);

// Keep a mirror for next time; an empty text forgets it.
void remember_mirror(const wchar_t *mirror);

// Start uv, which fetches Python; it writes what it does into python_log().
// mirror: an address or a folder, or an empty text.
// Returns the process, or NULL (GetLastError says why).
HANDLE start_fetch(const wchar_t *mirror);

// Room for last_words().
#define WORDS 3200

// The end of a log, up to `size` characters; empty where there is none.
void last_words(const wchar_t *log, wchar_t *words, int size);

const wchar_t *python_log(void);

// Start a program.
// line: its command line, which is changed; log: a file for what it prints, or NULL for our own;
// flags: of CreateProcess. Returns the process or NULL.
HANDLE start_program(wchar_t *line, const wchar_t *log, DWORD flags);

#endif
