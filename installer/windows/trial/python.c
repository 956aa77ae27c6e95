// Stands in for Python where the trial has no real one: writes down how it was called.
#include <windows.h>

#include <shellapi.h>
#include <stdio.h>

int main(void) {
    int count;
    FILE *said = fopen("C:\\called.txt", "wb");
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), &count);
    for (int i = 1; said && words && i < count; i++) {
        char text[2000];
        if (WideCharToMultiByte(CP_UTF8, 0, words[i], -1, text, sizeof text, NULL, NULL))
            fprintf(said, "<%s>\n", text);
    }
    return 0;
}
