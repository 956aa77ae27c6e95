// Fetching Python, in a small window: what, where to, from which mirror; progress; what went wrong.
#include "fetch.h"
#include "folders.h"
#include "launcher.h"
#include "python.h"

#include <commctrl.h>
#include <stdio.h>

#define DONE (WM_APP + 1)

static HANDLE fetching;

void complain(const wchar_t *message) {
    MessageBoxW(NULL, message, L"Medusa Chat", MB_OK | MB_ICONERROR | MB_SETFOREGROUND);
}

// Wait for uv beside the window, which goes on drawing.
static DWORD WINAPI wait_for_uv(LPVOID window) {
    DWORD status = 1;
    WaitForSingleObject(fetching, INFINITE);
    GetExitCodeProcess(fetching, &status);
    PostMessageW(window, DONE, status, 0);
    return 0;
}

static void show_working(HWND window, int working) {
    EnableWindow(GetDlgItem(window, IDOK), !working);
    EnableWindow(GetDlgItem(window, ID_MIRROR), !working);
    ShowWindow(GetDlgItem(window, ID_PROGRESS), working ? SW_SHOW : SW_HIDE);
    SendDlgItemMessageW(window, ID_PROGRESS, PBM_SETMARQUEE, working, 40);
}

static void show_state(HWND window, const wchar_t *text) {
    SetDlgItemTextW(window, ID_STATE, text);
    ShowWindow(GetDlgItem(window, ID_STATE), text[0] ? SW_SHOW : SW_HIDE);
}

static void begin(HWND window) {
    static wchar_t mirror[LONGEST];
    GetDlgItemTextW(window, ID_MIRROR, mirror, LONGEST);
    remember_mirror(mirror);
    fetching = start_fetch(mirror);
    if (!fetching) {
        show_state(window,
                   L"uv.exe could not be started. Install Medusa Chat again; if that doesn't "
                   L"help, see whether a virus scanner holds it back.");
        return;
    }
    show_state(window, L"Python is being fetched …");
    show_working(window, 1);
    CloseHandle(CreateThread(NULL, 0, wait_for_uv, window, 0, NULL));
}

static void end(HWND window, DWORD status) {
    static wchar_t words[WORDS], text[WORDS + 200], path[LONGEST];
    CloseHandle(fetching);
    fetching = NULL;
    show_working(window, 0);
    if (status == 0 && find_python(L"pythonw.exe", path)) {
        EndDialog(window, 1);
        return;
    }
    last_words(python_log(), words, WORDS);
    _snwprintf(text, WORDS + 199, L"Python could not be fetched. Is the network reachable? A mirror can be "
                           L"named above.\r\n\r\n%ls", words);
    show_state(window, text);
}

static void fill(HWND window) {
    static wchar_t text[LONGEST], mirror[LONGEST];
    _snwprintf(text, LONGEST - 1,
               L"Medusa Chat needs Python " PYTHON_VERSION L". It fetches a copy of its own (about "
               L"25 MB), which no other program uses and which goes when Medusa Chat is removed.\n\n"
               L"It is put into\n%ls\\python",
               data_folder());
    SetDlgItemTextW(window, ID_WORDS, text);
    known_mirror(mirror);
    SetDlgItemTextW(window, ID_MIRROR, mirror);
    HICON icon = LoadIconW(GetModuleHandleW(NULL), MAKEINTRESOURCEW(ID_ICON));
    SendMessageW(window, WM_SETICON, ICON_BIG, (LPARAM)icon);
    SendMessageW(window, WM_SETICON, ICON_SMALL, (LPARAM)icon);
    show_working(window, 0);
    show_state(window, L"");
}

static INT_PTR CALLBACK answer(HWND window, UINT message, WPARAM word, LPARAM more) {
    (void)more;
    switch (message) {
    case WM_INITDIALOG:
        fill(window);
        return TRUE;
    case DONE:
        end(window, (DWORD)word);
        return TRUE;
    case WM_COMMAND:
        if (LOWORD(word) == IDOK) {
            begin(window);
            return TRUE;
        }
        if (LOWORD(word) == IDCANCEL) {
            // Half a download is no Python: uv puts it in place when it is complete.
            if (fetching) TerminateProcess(fetching, 1);
            EndDialog(window, 0);
            return TRUE;
        }
    }
    return FALSE;
}

int fetch_python(void) {
    INITCOMMONCONTROLSEX controls = {sizeof controls, ICC_PROGRESS_CLASS | ICC_STANDARD_CLASSES};
    InitCommonControlsEx(&controls);
    return DialogBoxParamW(GetModuleHandleW(NULL), MAKEINTRESOURCEW(ID_WINDOW), NULL, answer, 0) == 1;
}
