// Numbers of what launcher.rc holds.
#define ID_ICON 1
#define ID_WINDOW 10
#define ID_WORDS 11
#define ID_MIRROR 12
#define ID_PROGRESS 13
#define ID_STATE 14
