// Where things lie; texts of paths are owned by these functions and live as long as the program.
#ifndef FOLDERS_H
#define FOLDERS_H
#include <windows.h>

// Characters that Windows allows in a path or a command line, with its end.
#define LONGEST 32768

// The folder of this program, without a final backslash: the wheel, uv.exe and launch.py lie there.
const wchar_t *program_folder(void);

// The folder that the installed packages of this user lie in, as installer/bootstrap/folders.py says.
const wchar_t *data_folder(void);

// `folder\name` in `path`, which holds LONGEST characters; cut off where it is longer.
void join(wchar_t *path, const wchar_t *folder, const wchar_t *name);

// Make a folder and those above it; what can't be made shows itself where it is written to.
void make_folders(const wchar_t *path);

#endif
