; The installer for one user: puts PROGRAM into a folder, lets uv fetch a Python into it, and tells
; Windows about it. `medusa uninstall` of the bootstrap removes what the program made for the user.
; makensis gets VERSION, VERSION_NUMBERS, PYTHON (3.13), OUTPUT, ICON, BANNER (a BMP file) and FILES,
; a list of commands that put PROGRAM into $INSTDIR.

Target amd64-unicode
Unicode true
ManifestDPIAware true
ManifestSupportedOS Win10
RequestExecutionLevel user
SetCompressor /SOLID lzma
SetDateSave off
CRCCheck force

!include MUI2.nsh
!include WinVer.nsh
!include FileFunc.nsh
!include nsDialogs.nsh
!include LogicLib.nsh

!define NAME "Medusa Chat"
!define UNINSTALL_KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\MedusaChat"
!define CLASSES "Software\Classes"
!define FILE_CLASS "MedusaChat.gguf"
!define LAUNCH '-E -s -X utf8 "$INSTDIR\launch.py"'
!define WINDOW '"$Python\pythonw.exe" ${LAUNCH} medusa-chat'
!define COMMAND '"$Python\python.exe" ${LAUNCH} medusa'
; Windows has this folder on each user's Path.
!define TERMINALS "$LOCALAPPDATA\Microsoft\WindowsApps"

Name "${NAME}"
OutFile "${OUTPUT}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${UNINSTALL_KEY}" InstallLocation
BrandingText "${NAME} ${VERSION}"

VIProductVersion "${VERSION_NUMBERS}"
VIAddVersionKey ProductName "${NAME}"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey FileDescription "Installer of ${NAME}"
VIAddVersionKey LegalCopyright ""

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_WELCOMEFINISHPAGE_BITMAP "${BANNER}"
!define MUI_ABORTWARNING
!define MUI_WELCOMEPAGE_TEXT "This puts ${NAME} ${VERSION} on this computer, for you alone; no administrator is needed. It downloads a Python of its own (about 25 MB), which no other program uses.$\r$\n$\r$\nAt the first start ${NAME} downloads what it runs with: PyTorch and other packages. It says how much that is before it begins.$\r$\n$\r$\nClick Next to continue."
!define MUI_COMPONENTSPAGE_SMALLDESC
!define MUI_FINISHPAGE_RUN
!define MUI_FINISHPAGE_RUN_FUNCTION StartWindow
!define MUI_FINISHPAGE_RUN_TEXT "Start ${NAME}"

!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
UninstPage custom un.AskWhatGoes un.KeepAnswer
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

Var Python ; folder of our Python; empty if there is none
Var DeleteOwn
Var Box

!macro Shared prefix
Function ${prefix}FindPython
  FindFirst $0 $Python "$INSTDIR\python\cpython-${PYTHON}.*"
  FindClose $0
  ${If} $Python != ""
    StrCpy $Python "$INSTDIR\python\$Python"
  ${EndIf}
FunctionEnd

; Windows lets nobody write to a program that runs.
Function ${prefix}WaitUntilClosed
again:
  ClearErrors
  ${If} ${FileExists} "$Python\pythonw.exe"
    FileOpen $0 "$Python\pythonw.exe" a
    FileClose $0
  ${EndIf}
  ${If} ${FileExists} "$Python\python.exe"
    FileOpen $0 "$Python\python.exe" a
    FileClose $0
  ${EndIf}
  ${If} ${Errors}
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "${NAME} is running. Close its windows and its servers, then try again." /SD IDCANCEL IDRETRY again
    SetErrorLevel 3
    Abort "${NAME} is running."
  ${EndIf}
FunctionEnd

; What the section below put into the folder; a file of somebody else stays.
Function ${prefix}RemoveProgram
  Delete "$INSTDIR\medusa_chat-*.whl"
  Delete "$INSTDIR\launch.py"
  Delete "$INSTDIR\icon.png"
  Delete "$INSTDIR\medusa-chat.ico"
  Delete "$INSTDIR\uv.exe"
  Delete "$INSTDIR\medusa.cmd"
  RMDir /r "$INSTDIR\installer"
FunctionEnd
!macroend
!insertmacro Shared ""
!insertmacro Shared "un."

Function .onInit
  ${IfNot} ${AtLeastWin10}
    MessageBox MB_OK|MB_ICONSTOP "${NAME} needs Windows 10 or newer, 64 bit." /SD IDOK
    SetErrorLevel 2
    Abort
  ${EndIf}
FunctionEnd

Function StartWindow
  Exec '${WINDOW}'
FunctionEnd

Function FetchPython
  InitPluginsDir
  System::Call 'kernel32::SetEnvironmentVariableW(w "UV_PYTHON_INSTALL_DIR", w "$INSTDIR\python")'
  System::Call 'kernel32::SetEnvironmentVariableW(w "UV_CACHE_DIR", w "$PLUGINSDIR\cache")'
again:
  DetailPrint "Downloading Python ${PYTHON}"
  nsExec::ExecToLog '"$INSTDIR\uv.exe" python install --no-bin --no-registry --no-progress cpython-${PYTHON}-windows-x86_64-none'
  Pop $1
  Call FindPython
  ; uv unpacks beside this folder and moves it: what is in its place is whole, whatever uv ends with.
  ${IfNot} ${FileExists} "$Python\pythonw.exe"
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "Python could not be downloaded; the list behind this message says why. Is the network reachable? A mirror, an address or a folder, is named by the environment variable UV_PYTHON_INSTALL_MIRROR." /SD IDCANCEL IDRETRY again
    SetErrorLevel 4
    Abort "Python could not be downloaded."
  ${EndIf}
FunctionEnd

Section "${NAME}" SectionProgram
  SectionIn RO
  Call FindPython
  Call WaitUntilClosed
  Call RemoveProgram ; of the version before
  !include "${FILES}"
  SetOutPath "$INSTDIR"
  File "/oname=medusa-chat.ico" "${ICON}"
  WriteUninstaller "$INSTDIR\Uninstall.exe"
  WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayName "${NAME}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayVersion "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" Publisher "${NAME}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayIcon "$INSTDIR\medusa-chat.ico"
  WriteRegStr HKCU "${UNINSTALL_KEY}" InstallLocation "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL_KEY}" UninstallString '"$INSTDIR\Uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL_KEY}" QuietUninstallString '"$INSTDIR\Uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" NoModify 1
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" NoRepair 1
  Call FetchPython
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" EstimatedSize $0

  FileOpen $0 "$INSTDIR\medusa.cmd" w
  StrLen $1 "$INSTDIR\"
  StrCpy $1 $Python "" $1
  FileWrite $0 '@"%~dp0$1\python.exe" -E -s -X utf8 "%~dp0launch.py" medusa %*$\r$\n'
  FileClose $0
  CreateDirectory "$SMPROGRAMS\${NAME}"
  CreateShortcut "$SMPROGRAMS\${NAME}\${NAME}.lnk" "$Python\pythonw.exe" '${LAUNCH} medusa-chat' "$INSTDIR\medusa-chat.ico"
  ; The terminal stays open, so that the outcome can be read.
  CreateShortcut "$SMPROGRAMS\${NAME}\Repair ${NAME}.lnk" "$SYSDIR\cmd.exe" \
    '/k ""$INSTDIR\medusa.cmd" repair"' "$INSTDIR\medusa-chat.ico"
SectionEnd

Section '"Open with" for GGUF models' SectionOpenWith
  ; Offered beside other programs; none is put in another's place.
  WriteRegStr HKCU "${CLASSES}\${FILE_CLASS}" "" "GGUF model"
  WriteRegStr HKCU "${CLASSES}\${FILE_CLASS}\DefaultIcon" "" "$INSTDIR\medusa-chat.ico"
  WriteRegStr HKCU "${CLASSES}\${FILE_CLASS}\Application" ApplicationName "${NAME}"
  WriteRegStr HKCU "${CLASSES}\${FILE_CLASS}\Application" ApplicationIcon "$INSTDIR\medusa-chat.ico"
  WriteRegStr HKCU "${CLASSES}\${FILE_CLASS}\shell\open\command" "" '${WINDOW} "%1"'
  WriteRegStr HKCU "${CLASSES}\.gguf\OpenWithProgids" "${FILE_CLASS}" ""
  System::Call 'shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)'
SectionEnd

Section 'Command "medusa" in terminals' SectionTerminal
  CreateDirectory "${TERMINALS}"
  FileOpen $0 "${TERMINALS}\medusa.cmd" w
  ; By the variable: cmd.exe reads letters of a user's name otherwise than NSIS writes them.
  StrCpy $1 $INSTDIR
  ${If} $INSTDIR == "$LOCALAPPDATA\Programs\${NAME}"
    StrCpy $1 "%LOCALAPPDATA%\Programs\${NAME}"
  ${EndIf}
  FileWrite $0 '@"$1\medusa.cmd" %*$\r$\n'
  FileClose $0
SectionEnd

Section /o "Shortcut on the desktop" SectionDesktop
  CreateShortcut "$DESKTOP\${NAME}.lnk" "$Python\pythonw.exe" '${LAUNCH} medusa-chat' "$INSTDIR\medusa-chat.ico"
SectionEnd

Function un.onInit
  StrCpy $DeleteOwn --keep-data
  Call un.FindPython
FunctionEnd

Function un.AskWhatGoes
  !insertmacro MUI_HEADER_TEXT "Uninstall ${NAME}" "What is removed, and what stays"
  nsDialogs::Create 1018
  Pop $0
  ${NSD_CreateLabel} 0 0 100% 24u "Removed: the program, the packages that it downloaded, its caches and logs."
  Pop $0
  ${NSD_CreateCheckbox} 0 30u 100% 12u "&Delete my conversations and settings too"
  Pop $Box
  ${NSD_CreateLabel} 0 52u 100% 30u "Models that you downloaded stay: they are in a cache that other programs share."
  Pop $0
  nsDialogs::Show
FunctionEnd

Function un.KeepAnswer
  ${NSD_GetState} $Box $0
  ${If} $0 == 1
    StrCpy $DeleteOwn --delete-data
  ${EndIf}
FunctionEnd

Section Uninstall
  Call un.WaitUntilClosed
  ${If} ${FileExists} "$Python\python.exe"
again:
    nsExec::ExecToLog '${COMMAND} uninstall --yes $DeleteOwn'
    Pop $0
    ${If} $0 != 0
      MessageBox MB_ABORTRETRYIGNORE|MB_ICONEXCLAMATION "Not all could be removed; the list behind this message says why." /SD IDIGNORE IDRETRY again IDIGNORE go
      Abort "Nothing more was removed."
    ${EndIf}
  ${EndIf}
go:
  Call un.RemoveProgram
  RMDir /r "$INSTDIR\python"
  Delete "${TERMINALS}\medusa.cmd"
  RMDir /r "$SMPROGRAMS\${NAME}"
  Delete "$DESKTOP\${NAME}.lnk"
  DeleteRegKey HKCU "${UNINSTALL_KEY}"
  DeleteRegKey HKCU "${CLASSES}\${FILE_CLASS}"
  DeleteRegValue HKCU "${CLASSES}\.gguf\OpenWithProgids" "${FILE_CLASS}"
  ; Only if nothing of others is in them.
  DeleteRegKey /ifempty HKCU "${CLASSES}\.gguf\OpenWithProgids"
  DeleteRegKey /ifempty HKCU "${CLASSES}\.gguf"
  System::Call 'shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)'
  Delete "$INSTDIR\Uninstall.exe"
  RMDir "$INSTDIR"
SectionEnd

!insertmacro MUI_FUNCTION_DESCRIPTION_BEGIN
  !insertmacro MUI_DESCRIPTION_TEXT ${SectionProgram} "The program and its entry in the start menu."
  !insertmacro MUI_DESCRIPTION_TEXT ${SectionOpenWith} "${NAME} is offered where a .gguf file is opened."
  !insertmacro MUI_DESCRIPTION_TEXT ${SectionTerminal} "Terminals find the program as medusa: chats, the server, measurements."
  !insertmacro MUI_DESCRIPTION_TEXT ${SectionDesktop} "A shortcut on the desktop."
!insertmacro MUI_FUNCTION_DESCRIPTION_END
