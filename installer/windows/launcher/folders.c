#include "folders.h"

#include <shlobj.h>
#include <stdio.h>

// An environment variable; 0 where it is unset, empty or blank.
static int variable(const wchar_t *name, wchar_t *value) {
    DWORD length = GetEnvironmentVariableW(name, value, LONGEST);
    return length > 0 && length < LONGEST && wcsspn(value, L" \t") < length;
}

void join(wchar_t *path, const wchar_t *folder, const wchar_t *name) {
    _snwprintf(path, LONGEST - 1, L"%ls\\%ls", folder, name);
    path[LONGEST - 1] = 0;
}

const wchar_t *program_folder(void) {
    static wchar_t path[LONGEST];
    if (!path[0]) {
        GetModuleFileNameW(NULL, path, LONGEST);
        wchar_t *last = wcsrchr(path, L'\\');
        if (last) *last = 0;
    }
    return path;
}

// What MEDUSA_HOME names, made absolute; 0 where it names nothing.
static int portable_home(wchar_t *home) {
    static wchar_t named[LONGEST], user[LONGEST], whole[LONGEST];
    if (!variable(L"MEDUSA_HOME", named)) return 0;
    int in_user = named[0] == L'~' && (!named[1] || wcschr(L"\\/", named[1]));
    if (in_user && variable(L"USERPROFILE", user))
        _snwprintf(whole, LONGEST - 1, L"%ls%ls", user, named + 1);
    else
        wcscpy(whole, named);
    DWORD length = GetFullPathNameW(whole, LONGEST, home, NULL);
    while (length > 3 && wcschr(L"\\/", home[length - 1])) home[--length] = 0;
    return length > 0;
}

const wchar_t *data_folder(void) {
    static wchar_t path[LONGEST], base[LONGEST], user[LONGEST];
    if (path[0]) return path;
    if (portable_home(base)) {
        join(path, base, L"program");
        return path;
    }
    if (!variable(L"LOCALAPPDATA", base)) {
        if (!variable(L"USERPROFILE", user)) wcscpy(user, L"C:");
        join(base, user, L"AppData\\Local");
    }
    join(path, base, L"medusa-chat-program");
    return path;
}

void make_folders(const wchar_t *path) { SHCreateDirectoryExW(NULL, path, NULL); }
