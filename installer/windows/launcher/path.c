// path.exe add FOLDER | path.exe remove FOLDER: the folders in which terminals of this user look for
// programs. NSIS reads at most 1024 characters, which would cut off a longer list.
#include <windows.h>

#include <shellapi.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define KEY L"Environment"
#define NAME L"Path"

// Read the list; the caller frees it. NULL where it can't be read. *type is REG_EXPAND_SZ or REG_SZ.
static wchar_t *read_list(HKEY key, DWORD *type) {
    DWORD size = 0;
    LONG found = RegQueryValueExW(key, NAME, NULL, type, NULL, &size);
    if (found == ERROR_FILE_NOT_FOUND) {
        *type = REG_EXPAND_SZ;
        return calloc(1, sizeof(wchar_t));
    }
    if (found != ERROR_SUCCESS || (*type != REG_SZ && *type != REG_EXPAND_SZ)) return NULL;
    wchar_t *list = calloc(1, size + sizeof(wchar_t));
    if (list && RegQueryValueExW(key, NAME, NULL, NULL, (BYTE *)list, &size) != ERROR_SUCCESS) {
        free(list);
        return NULL;
    }
    return list;
}

// A new list without `folder`, and with it at the end if `adds`; the caller frees it.
static wchar_t *changed(const wchar_t *list, const wchar_t *folder, int adds) {
    size_t length = wcslen(folder);
    wchar_t *made = calloc(wcslen(list) + length + 2, sizeof(wchar_t)), *out = made;
    if (!made) return NULL;
    for (const wchar_t *entry = list; *entry;) {
        size_t size = wcscspn(entry, L";");
        if (size && !(size == length && !_wcsnicmp(entry, folder, length))) {
            if (out > made) *out++ = L';';
            wmemcpy(out, entry, size);
            out += size;
        }
        entry += size + (entry[size] == L';');
    }
    if (adds) {
        if (out > made) *out++ = L';';
        wcscpy(out, folder);
    }
    return made;
}

static int write_list(HKEY key, DWORD type, const wchar_t *list) {
    if (!list[0]) return RegDeleteValueW(key, NAME) == ERROR_SUCCESS;
    DWORD size = (DWORD)((wcslen(list) + 1) * sizeof(wchar_t));
    return RegSetValueExW(key, NAME, 0, type, (const BYTE *)list, size) == ERROR_SUCCESS;
}

int main(void) {
    int count;
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), &count);
    if (!words || count != 3) return 2;
    int adds = !wcscmp(words[1], L"add");
    HKEY key;
    DWORD type;
    if (RegOpenKeyExW(HKEY_CURRENT_USER, KEY, 0, KEY_READ | KEY_WRITE, &key)) return 1;
    wchar_t *list = read_list(key, &type);
    wchar_t *wanted = list ? changed(list, words[2], adds) : NULL;
    if (!wanted) return 1;
    if (wcscmp(list, wanted)) {
        if (!write_list(key, type, wanted)) return 1;
        // Terminals that are opened from now on read it again.
        DWORD_PTR answer;
        SendMessageTimeoutW(HWND_BROADCAST, WM_SETTINGCHANGE, 0, (LPARAM)KEY, SMTO_ABORTIFHUNG, 2000,
                            &answer);
    }
    return 0;
}
