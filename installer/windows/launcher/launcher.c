// MedusaChat.exe and medusa.exe: find the Python of our own, or fetch it, and run launch.py with it.
// TERMINAL is defined for medusa.exe.
#include "fetch.h"
#include "folders.h"
#include "python.h"

#include <shlwapi.h>
#include <stdio.h>

#ifdef TERMINAL
#define PYTHON L"python.exe"
#define COMMAND L"medusa"
#else
#define PYTHON L"pythonw.exe"
#define COMMAND L"medusa-chat"
#endif

// What was typed after the name of this program, untouched, so that no quoting is lost.
static const wchar_t *typed_arguments(void) {
    const wchar_t *rest = GetCommandLineW();
    int quoted = 0;
    for (; *rest && (quoted || (*rest != L' ' && *rest != L'\t')); rest++)
        if (*rest == L'"') quoted = !quoted;
    return rest + wcsspn(rest, L" \t");
}

// What uv and the bootstrap must know: Python and what is fetched lie with the program's data.
static void set_variables(void) {
    static wchar_t path[LONGEST];
    join(path, data_folder(), L"python");
    SetEnvironmentVariableW(L"UV_PYTHON_INSTALL_DIR", path);
    join(path, data_folder(), L"cache");
    SetEnvironmentVariableW(L"UV_CACHE_DIR", path);
}

#ifdef TERMINAL
// Ctrl-C is for the program that we wait for; it says how that ends.
static BOOL WINAPI leave_to_child(DWORD event) {
    return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

static const wchar_t *start_log(void) { return NULL; }
#else
static const wchar_t *start_log(void) {
    static wchar_t path[LONGEST];
    join(path, data_folder(), L"log");
    make_folders(path);
    join(path, data_folder(), L"log\\launcher.log");
    return path;
}
#endif

// Wait for a program and return its exit status.
static DWORD follow(HANDLE program) {
    DWORD status = 1;
#ifdef TERMINAL
    SetConsoleCtrlHandler(leave_to_child, TRUE);
#endif
    WaitForSingleObject(program, INFINITE);
    GetExitCodeProcess(program, &status);
    CloseHandle(program);
    return status;
}

#ifndef TERMINAL
// The user ended it, or didn't want it set up: installer/bootstrap/cli.py.
static int is_wanted_end(DWORD status) { return status == 0 || status == 2 || status == 130; }

// Say what the bootstrap complained about, else what the program did.
static void explain(DWORD status) {
    static wchar_t words[WORDS], log[LONGEST], text[LONGEST];
    wcscpy(log, start_log());
    last_words(log, words, WORDS);
    if (!words[0]) {
        join(log, data_folder(), L"log\\start.log");
        last_words(log, words, WORDS);
    }
    _snwprintf(text, LONGEST - 1,
               L"Medusa Chat ended with an error (%lu). \"Repair Medusa Chat\" in the start menu "
               L"mends what is installed; conversations stay.\n\n%ls\n\nAll of it: %ls",
               status, words, log);
    complain(text);
}
#endif

int main(void) {
    static wchar_t python[LONGEST], script[LONGEST], line[LONGEST];
    join(script, program_folder(), L"launch.py");
    if (!PathFileExistsW(script)) {
        complain(L"Medusa Chat is incomplete: launch.py is missing. Install it again.");
        return 1;
    }
    set_variables();
    if (!find_python(PYTHON, python) && !(fetch_python() && find_python(PYTHON, python))) return 1;
    int length = _snwprintf(line, LONGEST - 1, L"\"%ls\" -E -s -X utf8 \"%ls\" " COMMAND L" %ls", python,
                            script, typed_arguments());
    if (length < 0 || length >= LONGEST - 1) {
        complain(L"The arguments are too long for Windows.");
        return 1;
    }
    HANDLE program = start_program(line, start_log(), 0);
    if (!program) {
        complain(L"Python could not be started. \"Repair Medusa Chat\" in the start menu mends that.");
        return 1;
    }
    DWORD status = follow(program);
#ifndef TERMINAL
    if (!is_wanted_end(status)) explain(status);
#endif
    return (int)status;
}
