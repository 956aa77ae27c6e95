// Fetching Python, in a terminal.
#include "fetch.h"
#include "folders.h"
#include "python.h"

#include <shellapi.h>
#include <stdio.h>

// Write to standard error: as it is to a console, else as UTF-8.
static void say(const wchar_t *text) {
    static char bytes[4 * LONGEST];
    HANDLE out = GetStdHandle(STD_ERROR_HANDLE);
    DWORD mode, written;
    if (GetConsoleMode(out, &mode)) {
        WriteConsoleW(out, text, (DWORD)wcslen(text), &written, NULL);
        return;
    }
    int size = WideCharToMultiByte(CP_UTF8, 0, text, -1, bytes, sizeof bytes, NULL, NULL);
    if (size > 0) WriteFile(out, bytes, size - 1, &written, NULL);
}

void complain(const wchar_t *message) {
    say(message);
    say(L"\n");
}

static int has_argument(const wchar_t *name) {
    int count, found = 0;
    wchar_t **arguments = CommandLineToArgvW(GetCommandLineW(), &count);
    for (int i = 1; arguments && i < count; i++) found |= !wcscmp(arguments[i], name);
    LocalFree(arguments);
    return found;
}

static int agrees(void) {
    char line[64];
    if (has_argument(L"--yes")) return 1;
    say(L"Fetch it? [y/n] ");
    if (!fgets(line, sizeof line, stdin)) {
        say(L"\nNobody answered. Run it in a terminal, or add --yes.\n");
        return 0;
    }
    return line[0] == 'y' || line[0] == 'Y';
}

int fetch_python(void) {
    static wchar_t text[LONGEST], mirror[LONGEST], path[LONGEST], words[WORDS];
    DWORD status = 1;
    _snwprintf(text, LONGEST - 1,
               L"Medusa Chat needs Python " PYTHON_VERSION L", a copy of its own (about 25 MB) in\n"
               L"%ls\\python\n",
               data_folder());
    say(text);
    if (!agrees()) return 0;
    known_mirror(mirror);
    HANDLE uv = start_fetch(mirror);
    if (!uv) {
        complain(L"uv.exe could not be started. Install Medusa Chat again.");
        return 0;
    }
    WaitForSingleObject(uv, INFINITE);
    GetExitCodeProcess(uv, &status);
    CloseHandle(uv);
    if (status == 0 && find_python(L"python.exe", path)) return 1;
    last_words(python_log(), words, WORDS);
    say(words);
    complain(L"\nPython could not be fetched. Is the network reachable? A mirror is named by the "
             L"variable UV_PYTHON_INSTALL_MIRROR.");
    return 0;
}
