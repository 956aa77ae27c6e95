// bcryptprimitives.dll of Windows, which wine has since version 9 and uv.exe asks for random bytes.
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
    return RtlGenRandom(data, (ULONG)size);
}
