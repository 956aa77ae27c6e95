; Where things of this user lie, as installer/bootstrap/folders.py says.

Var Data ; what the bootstrap made for this user; empty where nobody can say where that lies
Var Own ; conversations, settings; empty where they stay in any case

!macro FindFolders prefix
; A MEDUSA_HOME that isn't a whole path was relative to wherever the program was started, and one that
; can't be a path (or was cut off by NSIS) names nothing of ours: nothing is removed then.
Function ${prefix}FindFolders
  StrCpy $Data "$LOCALAPPDATA\medusa-chat-program"
  StrCpy $Own "$LOCALAPPDATA\medusa-chat\medusa-chat"
  ReadEnvStr $0 MEDUSA_HOME
  StrLen $1 $0
  System::Call 'shlwapi::StrSpnW(w r0, w " $\t$\n$\r") i .r2'
  ${If} $1 == $2
    Return
  ${EndIf}
  StrCpy $Data ""
  StrCpy $Own ""
  Call ${prefix}IsWholePath
  ${If} $2 == 1
    System::Call 'kernel32::GetFullPathNameW(w r0, i ${NSIS_MAX_STRLEN}, w .r0, p 0) i .r1'
    StrCpy $2 $0 1 -1
    ${If} $2 == "\"
      StrCpy $0 $0 -1
    ${EndIf}
    StrCpy $Data "$0\program"
  ${EndIf}
FunctionEnd

; Put the user's folder for a ~ into $0, and 1 into $2 if a path from its root is in $0.
Function ${prefix}IsWholePath
  StrCpy $2 0
  ; NSIS has room for 1024; names of parts are added to what is here.
  System::Call 'kernel32::GetEnvironmentVariableW(w "MEDUSA_HOME", p 0, i 0) i .r1'
  ${If} $1 > 900
    Return
  ${EndIf}
  StrCpy $3 $0 1
  StrCpy $4 $0 1 1
  ${If} $3 == "~"
    ${If} $4 == ""
    ${OrIf} $4 == "\"
    ${OrIf} $4 == "/"
      StrCpy $0 $0 "" 1
      StrCpy $0 "$PROFILE$0"
    ${EndIf}
  ${EndIf}
  StrLen $1 $0
  StrCpy $3 '"*?<>|'
  System::Call 'shlwapi::StrCSpnW(w r0, w r3) i .r3'
  ${If} $3 != $1
    Return
  ${EndIf}
  StrCpy $3 $0 2
  StrCpy $4 $0 2 1
  ${If} $4 == ":\"
  ${OrIf} $4 == ":/"
  ${OrIf} $3 == "\\"
  ${OrIf} $3 == "//"
    StrCpy $2 1
  ${EndIf}
FunctionEnd
!macroend
