; The installer for one user: puts PROGRAM into a folder and tells Windows about it.
; makensis gets VERSION, VERSION_NUMBERS, OUTPUT, ICON, BANNER (a BMP file), PATH_TOOL (path.exe)
; and FILES, a list of commands that put PROGRAM into $INSTDIR.

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
!include "${__FILEDIR__}\folders.nsh"

!define NAME "Medusa Chat"
!define UNINSTALL_KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\MedusaChat"
!define CLASSES "Software\Classes"
!define FILE_CLASS "MedusaChat.gguf"

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
!define MUI_WELCOMEPAGE_TEXT "This puts ${NAME} ${VERSION} on this computer, for you alone; no administrator is needed.$\r$\n$\r$\nAt the first start ${NAME} fetches what it runs with: Python, PyTorch and other packages. It says how much that is before it begins.$\r$\n$\r$\nClick Next to continue."
!define MUI_COMPONENTSPAGE_SMALLDESC
!define MUI_FINISHPAGE_RUN "$INSTDIR\MedusaChat.exe"
!define MUI_FINISHPAGE_RUN_TEXT "Start ${NAME}"

!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_COMPONENTS
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
UninstPage custom un.AskWhatGoes un.KeepAnswer
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

Var DeleteOwn
Var Box

; Push 1 if a program of ours runs: Windows lets nobody write to a running one.
!macro AskWhetherRunning prefix
Function ${prefix}IsRunning
  Push $0
  Push $1
  StrCpy $1 0
  ClearErrors
  IfFileExists "$INSTDIR\MedusaChat.exe" 0 terminal
  FileOpen $0 "$INSTDIR\MedusaChat.exe" a
  IfErrors running
  FileClose $0
terminal:
  IfFileExists "$INSTDIR\medusa.exe" 0 done
  FileOpen $0 "$INSTDIR\medusa.exe" a
  IfErrors running
  FileClose $0
  Goto done
running:
  StrCpy $1 1
done:
  Exch $1
  Exch
  Pop $0
FunctionEnd

Function ${prefix}WaitUntilClosed
again:
  Call ${prefix}IsRunning
  Pop $0
  ${If} $0 == 1
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "${NAME} is running. Close its windows and its servers, then try again." /SD IDCANCEL IDRETRY again
    SetErrorLevel 3
    Abort "${NAME} is running."
  ${EndIf}
FunctionEnd
!macroend
!insertmacro AskWhetherRunning ""
!insertmacro AskWhetherRunning "un."

Function .onInit
  ${IfNot} ${AtLeastWin10}
    MessageBox MB_OK|MB_ICONSTOP "${NAME} needs Windows 10 or newer, 64 bit." /SD IDOK
    SetErrorLevel 2
    Abort
  ${EndIf}
FunctionEnd

Section "${NAME}" SectionProgram
  SectionIn RO
  Call WaitUntilClosed
  Call RemoveProgram ; of the version before
  !include "${FILES}"
  SetOutPath "$INSTDIR"
  WriteUninstaller "$INSTDIR\Uninstall.exe"

  CreateDirectory "$SMPROGRAMS\${NAME}"
  CreateShortcut "$SMPROGRAMS\${NAME}\${NAME}.lnk" "$INSTDIR\MedusaChat.exe"
  ; The terminal stays open, so that the outcome can be read.
  CreateShortcut "$SMPROGRAMS\${NAME}\Repair ${NAME}.lnk" "$SYSDIR\cmd.exe" \
    '/k ""$INSTDIR\medusa.exe" repair"' "$INSTDIR\MedusaChat.exe"
  WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayName "${NAME}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayVersion "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" Publisher "${NAME}"
  WriteRegStr HKCU "${UNINSTALL_KEY}" DisplayIcon "$INSTDIR\MedusaChat.exe"
  WriteRegStr HKCU "${UNINSTALL_KEY}" InstallLocation "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL_KEY}" UninstallString '"$INSTDIR\Uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL_KEY}" QuietUninstallString '"$INSTDIR\Uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" NoModify 1
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" NoRepair 1
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  WriteRegDWORD HKCU "${UNINSTALL_KEY}" EstimatedSize $0
SectionEnd

Section '"Open with" for GGUF models' SectionOpenWith
  ; Offered beside other programs; none is put in another's place.
  WriteRegStr HKCU "${CLASSES}\${FILE_CLASS}" "" "GGUF model"
  WriteRegStr HKCU "${CLASSES}\${FILE_CLASS}\DefaultIcon" "" "$INSTDIR\MedusaChat.exe,0"
  WriteRegStr HKCU "${CLASSES}\${FILE_CLASS}\shell\open\command" "" '"$INSTDIR\MedusaChat.exe" "%1"'
  WriteRegStr HKCU "${CLASSES}\.gguf\OpenWithProgids" "${FILE_CLASS}" ""
  WriteRegStr HKCU "${CLASSES}\Applications\MedusaChat.exe" FriendlyAppName "${NAME}"
  WriteRegStr HKCU "${CLASSES}\Applications\MedusaChat.exe\SupportedTypes" ".gguf" ""
  WriteRegStr HKCU "${CLASSES}\Applications\MedusaChat.exe\shell\open\command" "" '"$INSTDIR\MedusaChat.exe" "%1"'
  System::Call 'shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)'
SectionEnd

Section 'Command "medusa" in terminals' SectionTerminal
  StrCpy $0 add
  Call ChangePath
SectionEnd

Section /o "Shortcut on the desktop" SectionDesktop
  CreateShortcut "$DESKTOP\${NAME}.lnk" "$INSTDIR\MedusaChat.exe"
SectionEnd

Function un.onInit
  StrCpy $DeleteOwn 0
  Call un.FindFolders
FunctionEnd

!insertmacro FindFolders "un."

Function un.AskWhatGoes
  !insertmacro MUI_HEADER_TEXT "Uninstall ${NAME}" "What is removed, and what stays"
  nsDialogs::Create 1018
  Pop $0
  ${If} $Data == ""
    ${NSD_CreateLabel} 0 0 100% 36u "Removed: the program. The packages that it fetched stay: MEDUSA_HOME isn't a whole path, so nobody can say where they lie."
  ${ElseIf} $Own == ""
    ${NSD_CreateLabel} 0 0 100% 36u "Removed: the program, and the packages that it fetched in$\r$\n$Data"
  ${Else}
    ${NSD_CreateLabel} 0 0 100% 36u "Removed: the program, its caches and logs, and the packages that it fetched in$\r$\n$Data"
  ${EndIf}
  Pop $0
  ${If} $Own == ""
    ${NSD_CreateLabel} 0 42u 100% 30u "Your conversations and settings stay in the folder that MEDUSA_HOME names."
    Pop $0
  ${Else}
    ${NSD_CreateLabel} 0 42u 100% 24u "Your conversations and settings stay in$\r$\n$Own"
    Pop $0
    ${NSD_CreateCheckbox} 0 70u 100% 12u "&Delete my conversations and settings too"
    Pop $Box
  ${EndIf}
  ${NSD_CreateLabel} 0 92u 100% 30u "Models that you downloaded stay in any case: they lie in a cache that other programs share."
  Pop $0
  nsDialogs::Show
FunctionEnd

Function un.KeepAnswer
  ${If} $Own != ""
    ${NSD_GetState} $Box $DeleteOwn
  ${EndIf}
FunctionEnd

; The folder $0 and all below it. `rd` removes links, not what they lead to, and paths of any length.
; cmd.exe would replace a %NAME% in a path that it reads, so it gets the path by a variable.
Function un.RemoveFolder
  IfFileExists "$0\*.*" 0 gone
  DetailPrint "Removing $0"
  System::Call 'kernel32::SetEnvironmentVariableW(w "REMOVED_FOLDER", w r0)'
  nsExec::Exec '"$SYSDIR\cmd.exe" /d /v:on /c rd /s /q "!REMOVED_FOLDER!"'
  Pop $1
  IfFileExists "$0\*.*" 0 gone
  DetailPrint "Something of $0 could not be removed."
  MessageBox MB_OK|MB_ICONEXCLAMATION "Something of $0 could not be removed. A program may have it open; you may delete the folder yourself." /SD IDOK
gone:
FunctionEnd

; path.exe does $0 with $INSTDIR.
!macro ChangePath prefix
Function ${prefix}ChangePath
  InitPluginsDir
  File "/oname=$PLUGINSDIR\path.exe" "${PATH_TOOL}"
  nsExec::Exec '"$PLUGINSDIR\path.exe" $0 "$INSTDIR"'
  Pop $1
  ${If} $1 != 0
    DetailPrint "The list of folders with programs (Path) could not be changed."
  ${EndIf}
FunctionEnd
!macroend
!insertmacro ChangePath ""
!insertmacro ChangePath "un."

; What the section above and those before it put into the folder; a file of somebody else stays.
!macro RemoveProgram prefix
Function ${prefix}RemoveProgram
  Delete "$INSTDIR\medusa_chat-*.whl"
  Delete "$INSTDIR\constraints.txt"
  Delete "$INSTDIR\launch.py"
  Delete "$INSTDIR\icon.png"
  Delete "$INSTDIR\uv.exe"
  Delete "$INSTDIR\MedusaChat.exe"
  Delete "$INSTDIR\medusa.exe"
  RMDir /r "$INSTDIR\installer"
FunctionEnd
!macroend
!insertmacro RemoveProgram ""
!insertmacro RemoveProgram "un."

!macro RemovePart name
  StrCpy $0 "$Data\${name}"
  Call un.RemoveFolder
!macroend

; What bootstrap and launcher make: MEDUSA_HOME may name a folder with a `program` of somebody else.
Function un.RemoveData
  ${If} $Data == ""
    DetailPrint "MEDUSA_HOME isn't a whole path: what the program fetched stays."
    Return
  ${EndIf}
  !insertmacro RemovePart versions
  !insertmacro RemovePart wheels
  !insertmacro RemovePart cache
  !insertmacro RemovePart models
  !insertmacro RemovePart python
  !insertmacro RemovePart log
  Delete "$Data\current.json"
  Delete "$Data\settings.json"
  Delete "$Data\lock"
  Delete "$Data\python-mirror.txt"
  RMDir "$Data"
FunctionEnd

; As `medusa uninstall`: caches and logs go with the program, where others can't have put anything
; into them; conversations and settings only if the user says so.
Function un.RemoveOwn
  ${If} $Own == ""
    Return
  ${EndIf}
  ${If} $DeleteOwn == 1
    StrCpy $0 $Own
    Call un.RemoveFolder
  ${Else}
    StrCpy $0 "$Own\Cache"
    Call un.RemoveFolder
    StrCpy $0 "$Own\Logs"
    Call un.RemoveFolder
    RMDir "$Own"
  ${EndIf}
  RMDir "$LOCALAPPDATA\medusa-chat"
FunctionEnd

Section Uninstall
  Call un.WaitUntilClosed
  Call un.RemoveProgram
  Call un.RemoveData
  Call un.RemoveOwn
  StrCpy $0 remove
  Call un.ChangePath
  RMDir /r "$SMPROGRAMS\${NAME}"
  Delete "$DESKTOP\${NAME}.lnk"
  DeleteRegKey HKCU "${UNINSTALL_KEY}"
  DeleteRegKey HKCU "${CLASSES}\${FILE_CLASS}"
  DeleteRegKey HKCU "${CLASSES}\Applications\MedusaChat.exe"
  DeleteRegValue HKCU "${CLASSES}\.gguf\OpenWithProgids" "${FILE_CLASS}"
  ; Only where nothing of others is in them.
  DeleteRegKey /ifempty HKCU "${CLASSES}\Applications"
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
