#include "python.h"

#include "folders.h"

#include <shlwapi.h>
#include <stdio.h>
#include <string.h>

#define KIND L"-windows-x86_64-none"
#define MIRROR L"UV_PYTHON_INSTALL_MIRROR"

int find_python(const wchar_t *name, wchar_t *path) {
    static wchar_t pythons[LONGEST], pattern[LONGEST], below[LONGEST], found[LONGEST];
    wchar_t newest[MAX_PATH] = L"";
    WIN32_FIND_DATAW entry;
    join(pythons, data_folder(), L"python");
    join(pattern, pythons, L"cpython-" PYTHON_VERSION L".*" KIND);
    HANDLE search = FindFirstFileW(pattern, &entry);
    if (search == INVALID_HANDLE_VALUE) return 0;
    do {
        _snwprintf(below, LONGEST - 1, L"%ls\\%ls", entry.cFileName, name);
        join(found, pythons, below);
        // 3.13.9 comes before 3.13.10.
        if (PathFileExistsW(found) && StrCmpLogicalW(entry.cFileName, newest) > 0) {
            wcscpy(newest, entry.cFileName);
            wcscpy(path, found);
        }
    } while (FindNextFileW(search, &entry));
    FindClose(search);
    return newest[0] != 0;
}

static const wchar_t *mirror_file(void) {
    static wchar_t path[LONGEST];
    join(path, data_folder(), L"python-mirror.txt");
    return path;
}

void known_mirror(wchar_t *mirror) {
    char bytes[4096];
    mirror[0] = 0;
    DWORD length = GetEnvironmentVariableW(MIRROR, mirror, LONGEST);
    if (length > 0 && length < LONGEST) return;
    FILE *file = _wfopen(mirror_file(), L"rb");
    if (!file) return;
    size_t size = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    bytes[size] = 0;
    bytes[strcspn(bytes, "\r\n")] = 0;
    MultiByteToWideChar(CP_UTF8, 0, bytes, -1, mirror, LONGEST);
}

void remember_mirror(const wchar_t *mirror) {
    char bytes[4096];
    if (!mirror[0]) {
        DeleteFileW(mirror_file());
        return;
    }
    if (!WideCharToMultiByte(CP_UTF8, 0, mirror, -1, bytes, sizeof bytes, NULL, NULL)) return;
    make_folders(data_folder());
    FILE *file = _wfopen(mirror_file(), L"wb");
    if (!file) return;
    fprintf(file, "%s\r\n", bytes);
    fclose(file);
}

// A folder as the address that uv takes; an address stays as it is. A folder that holds packages too
// has its Pythons in `python`, as installer/bootstrap/sources.py says.
static void as_address(const wchar_t *mirror, wchar_t *address) {
    static wchar_t whole[LONGEST], below[LONGEST];
    if (wcsstr(mirror, L"://")) {
        wcscpy(address, mirror);
        return;
    }
    GetFullPathNameW(mirror, LONGEST, whole, NULL);
    join(below, whole, L"python");
    if (PathIsDirectoryW(below)) wcscpy(whole, below);
    // \\server\share becomes file://server/share.
    wchar_t *out = address + swprintf(address, LONGEST, whole[0] == L'\\' ? L"file:" : L"file:///");
    for (const wchar_t *in = whole; *in && out < address + LONGEST - 4; in++) {
        if (*in == L'\\') *out++ = L'/';
        else if (wcschr(L"%#? ", *in)) out += swprintf(out, 4, L"%%%02X", *in);
        else *out++ = *in;
    }
    *out = 0;
    if (out > address && out[-1] == L'/') out[-1] = 0;
}

const wchar_t *python_log(void) {
    static wchar_t path[LONGEST];
    join(path, data_folder(), L"log\\python.log");
    return path;
}

HANDLE start_program(wchar_t *line, const wchar_t *log, DWORD flags) {
    STARTUPINFOW start = {.cb = sizeof start};
    PROCESS_INFORMATION process;
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    HANDLE file = INVALID_HANDLE_VALUE, nothing = INVALID_HANDLE_VALUE;
    if (log) {
        file = CreateFileW(log, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited,
                           CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
        nothing = CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ, &inherited, OPEN_EXISTING, 0,
                              NULL);
        if (file == INVALID_HANDLE_VALUE) return NULL;
        start.dwFlags = STARTF_USESTDHANDLES;
        start.hStdInput = nothing;
        start.hStdOutput = start.hStdError = file;
    }
    BOOL started = CreateProcessW(NULL, line, NULL, NULL, TRUE, flags, NULL, NULL, &start, &process);
    DWORD reason = GetLastError();
    if (log) {
        CloseHandle(file);
        CloseHandle(nothing);
    }
    SetLastError(reason);
    if (!started) return NULL;
    CloseHandle(process.hThread);
    return process.hProcess;
}

HANDLE start_fetch(const wchar_t *mirror) {
    static wchar_t folder[LONGEST], address[LONGEST], line[LONGEST];
    join(folder, data_folder(), L"log");
    make_folders(folder);
    if (mirror[0]) {
        as_address(mirror, address);
        SetEnvironmentVariableW(MIRROR, address);
    } else {
        SetEnvironmentVariableW(MIRROR, NULL);
    }
    _snwprintf(line, LONGEST - 1,
               L"\"%ls\\uv.exe\" python install --no-bin --no-registry --no-progress "
               L"cpython-" PYTHON_VERSION KIND,
               program_folder());
    return start_program(line, python_log(), CREATE_NO_WINDOW);
}

void last_words(const wchar_t *log, wchar_t *words, int size) {
    char bytes[1600], lines[2 * sizeof bytes];
    words[0] = 0;
    FILE *file = _wfopen(log, L"rb");
    if (!file) return;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    int cut = length > (long)sizeof bytes - 1;
    fseek(file, cut ? length - (long)sizeof bytes + 1 : 0, SEEK_SET);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = 0;
    fclose(file);
    // The first line may begin in the middle of a character.
    char *begin = cut && strchr(bytes, '\n') ? strchr(bytes, '\n') + 1 : bytes;
    // Windows shows a line's end only where there are both characters.
    char *out = lines;
    for (char *in = begin; *in; in++) {
        if (*in == '\n' && (in == begin || in[-1] != '\r')) *out++ = '\r';
        *out++ = *in;
    }
    *out = 0;
    if (!MultiByteToWideChar(CP_UTF8, 0, lines, -1, words, size)) words[size - 1] = 0;
}
