<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en_US">
<context>
    <name>AboutDialog</name>
    <message>
        <source>About Medusa Chat</source>
        <translation>Über Medusa Chat</translation>
    </message>
    <message>
        <source>Medusa Chat answers on this computer alone; nothing is sent anywhere. Extra heads on the model draft a tree of next tokens, one pass of the model verifies them all, and in exact mode the text is what the model alone would have written.</source>
        <translation>Medusa Chat antwortet allein auf diesem Computer; nichts wird verschickt. Zusatzköpfe am Modell entwerfen einen Baum der nächsten Token, ein Durchlauf des Modells prüft alle, und im exakten Modus ist der Text genau der, den das Modell allein geschrieben hätte.</translation>
    </message>
    <message>
        <source>The small demo model is called Llama-Pebble because part of the text that it learned from was written by Llama 3.1. It holds no weights of Meta&apos;s and is not made by Meta.</source>
        <translation>Das kleine Demomodell heißt Llama-Pebble, weil ein Teil der Texte, aus denen es gelernt hat, von Llama 3.1 stammt. Es enthält keine Gewichte von Meta und ist nicht von Meta.</translation>
    </message>
    <message>
        <source>Sources and licences lie beside the files, in {0}.</source>
        <translation>Quellen und Lizenzen liegen neben den Dateien, in {0}.</translation>
    </message>
    <message>
        <source>Versions</source>
        <translation>Versionen</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>Lizenzen</translation>
    </message>
    <message>
        <source>Links</source>
        <translation>Verweise</translation>
    </message>
    <message>
        <source>About</source>
        <translation>Über</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>AttachmentBar</name>
    <message>
        <source>Put the text into the message</source>
        <translation>Text in die Nachricht übernehmen</translation>
    </message>
    <message>
        <source>Show what the model reads of it</source>
        <translation>Zeigen, was das Modell davon liest</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>{name} entfernen</translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Enter sends · Shift+Enter starts a new line · Esc stops</source>
        <translation>Eingabe sendet · Umschalt+Eingabe neue Zeile · Esc hält an</translation>
    </message>
    <message>
        <source>Tokens of this chat and your message, out of the most that the model can read.</source>
        <translation>Token dieses Gesprächs und Ihrer Nachricht, von so vielen, wie das Modell höchstens lesen kann.</translation>
    </message>
    <message>
        <source>{used} of {all} tokens</source>
        <translation>{used} von {all} Token</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Attach files</source>
        <translation>Dateien anhängen</translation>
    </message>
    <message>
        <source>Attach text, code, PDF or DOCX</source>
        <translation>Text, Code, PDF oder DOCX anhängen</translation>
    </message>
    <message>
        <source>Pasted text</source>
        <translation>Eingefügter Text</translation>
    </message>
    <message>
        <source>A file is being read</source>
        <translation>Eine Datei wird gelesen</translation>
    </message>
</context>
<context>
    <name>ContextMeter</name>
    <message>
        <source>The chat template can&apos;t write this chat.</source>
        <translation>Die Chatvorlage kann dieses Gespräch nicht schreiben.</translation>
    </message>
    <message>
        <source>Too long: {lack}</source>
        <translation>Zu lang: {lack}</translation>
    </message>
    <message>
        <source>{messages} don&apos;t fit and won&apos;t be read · </source>
        <translation>{messages} passen nicht hinein und werden nicht gelesen · </translation>
    </message>
    <message>
        <source>The model no longer reads {messages}: they don&apos;t fit into its context.</source>
        <translation>Das Modell liest {messages} nicht mehr: Sie passen nicht in seinen Kontext.</translation>
    </message>
    <message>
        <source>1 earlier message</source>
        <translation>1 frühere Nachricht</translation>
    </message>
    <message>
        <source>{count} earlier messages</source>
        <translation>{count} frühere Nachrichten</translation>
    </message>
</context>
<context>
    <name>ControlPanel</name>
    <message>
        <source>Forget the oldest</source>
        <translation>Älteste vergessen</translation>
    </message>
    <message>
        <source>The model no longer reads the oldest messages; the system prompt stays.</source>
        <translation>Das Modell liest die ältesten Nachrichten nicht mehr; die Systemanweisung bleibt.</translation>
    </message>
    <message>
        <source>Forget the middle</source>
        <translation>Mitte vergessen</translation>
    </message>
    <message>
        <source>The model reads the beginning and the end; the system prompt stays.</source>
        <translation>Das Modell liest Anfang und Ende; die Systemanweisung bleibt.</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>A chat that is too long isn&apos;t answered.</source>
        <translation>Ein zu langes Gespräch wird nicht beantwortet.</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>Systemanweisung</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
    <message>
        <source>Template</source>
        <translation>Vorlage</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>Auswahl der Token</translation>
    </message>
    <message>
        <source>Length and stop</source>
        <translation>Länge und Ende</translation>
    </message>
    <message>
        <source>Speed-up</source>
        <translation>Beschleunigung</translation>
    </message>
    <message>
        <source>Settings of this chat</source>
        <translation>Einstellungen dieses Gesprächs</translation>
    </message>
    <message>
        <source>This chat</source>
        <translation>Dieses Gespräch</translation>
    </message>
    <message>
        <source>Close the panel</source>
        <translation>Leiste schließen</translation>
    </message>
    <message>
        <source>Close the panel (Ctrl+Shift+P)</source>
        <translation>Leiste schließen (Strg+Umschalt+P)</translation>
    </message>
    <message>
        <source>How should the model answer?</source>
        <translation>Wie soll das Modell antworten?</translation>
    </message>
    <message>
        <source>When the chat is too long</source>
        <translation>Wenn das Gespräch zu lang ist</translation>
    </message>
    <message>
        <source>Stop strings</source>
        <translation>Endtexte</translation>
    </message>
    <message>
        <source>Stop strings, one in a line</source>
        <translation>Endtexte, einer je Zeile</translation>
    </message>
    <message>
        <source>Greedy draws nothing, so it needs no seed.</source>
        <translation>Greedy lost nichts aus und braucht keinen Startwert.</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>Startwert</translation>
    </message>
    <message>
        <source>The same seed repeats the same answer. Drafting does not depend on it.</source>
        <translation>Derselbe Startwert wiederholt dieselbe Antwort. Das Vorausraten hängt nicht davon ab.</translation>
    </message>
    <message>
        <source>a new one each time</source>
        <translation>jedes Mal ein neuer</translation>
    </message>
    <message>
        <source>The model reads this before the chat. Not every model follows it.</source>
        <translation>Das liest das Modell vor dem Gespräch. Nicht jedes Modell hält sich daran.</translation>
    </message>
    <message>
        <source>An answer ends where it reaches one of these; \n is a new line.</source>
        <translation>Eine Antwort endet, wo sie einen davon erreicht; \n ist ein Zeilenumbruch.</translation>
    </message>
    <message>
        <source>Use for new chats</source>
        <translation>Für neue Gespräche nehmen</translation>
    </message>
    <message>
        <source>New chats begin with the settings of this one.</source>
        <translation>Neue Gespräche beginnen mit den Einstellungen von diesem.</translation>
    </message>
</context>
<context>
    <name>ConversationListView</name>
    <message>
        <source>Conversations</source>
        <translation>Gespräche</translation>
    </message>
</context>
<context>
    <name>Desk</name>
    <message>
        <source>Medusa Chat didn&apos;t end properly last time.</source>
        <translation>Medusa Chat wurde zuletzt nicht richtig beendet.</translation>
    </message>
    <message>
        <source>Your conversations are kept. The diagnostics may say what happened.</source>
        <translation>Ihre Gespräche sind erhalten. Die Diagnose sagt vielleicht, was geschehen ist.</translation>
    </message>
    <message>
        <source>Show diagnostics</source>
        <translation>Diagnose zeigen</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>Gespräche</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Logs</source>
        <translation>Protokolle</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
</context>
<context>
    <name>Details</name>
    <message>
        <source>Keep token vectors in RAM</source>
        <translation>Tokenvektoren im RAM halten</translation>
    </message>
    <message>
        <source>A step reads only a few of them; this frees memory on the card.</source>
        <translation>Ein Schritt liest nur wenige davon; das macht Speicher auf der Karte frei.</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>Kontext</translation>
    </message>
</context>
<context>
    <name>DeviceBox</name>
    <message>
        <source>Run on</source>
        <translation>Rechnen auf</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>Automatisch</translation>
    </message>
    <message>
        <source>{0} (not here)</source>
        <translation>{0} (nicht da)</translation>
    </message>
</context>
<context>
    <name>DiagnosticsDialog</name>
    <message>
        <source>Diagnostics</source>
        <translation>Diagnose</translation>
    </message>
    <message>
        <source>Checks</source>
        <translation>Prüfungen</translation>
    </message>
    <message>
        <source>Finding</source>
        <translation>Befund</translation>
    </message>
    <message>
        <source>What was looked at</source>
        <translation>Was geprüft wurde</translation>
    </message>
    <message>
        <source>Works</source>
        <translation>Geht</translation>
    </message>
    <message>
        <source>Report</source>
        <translation>Bericht</translation>
    </message>
    <message>
        <source>Save report…</source>
        <translation>Bericht sichern…</translation>
    </message>
    <message>
        <source>Copy report</source>
        <translation>Bericht kopieren</translation>
    </message>
    <message>
        <source>Check again</source>
        <translation>Erneut prüfen</translation>
    </message>
    <message>
        <source>It can&apos;t be saved: {0}</source>
        <translation>Speichern nicht möglich: {0}</translation>
    </message>
    <message>
        <source>Saved as {0}.</source>
        <translation>Gesichert als {0}.</translation>
    </message>
    <message>
        <source>Looking …</source>
        <translation>Wird geprüft …</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>ja</translation>
    </message>
    <message>
        <source>no</source>
        <translation>nein</translation>
    </message>
    <message>
        <source>{0} of {1} checks found something wrong.</source>
        <translation>{0} von {1} Prüfungen fanden einen Fehler.</translation>
    </message>
    <message>
        <source>All {0} checks are fine.</source>
        <translation>Alle {0} Prüfungen sind in Ordnung.</translation>
    </message>
    <message>
        <source>This is all that the report holds. It has no conversations; names of home folders and tokens are taken out. It is sent nowhere: save or copy it yourself.</source>
        <translation>Das ist alles, was im Bericht steht. Er enthält keine Gespräche; Namen von Benutzerordnern und Token sind entfernt. Er wird nirgends hingeschickt: Sichern oder kopieren Sie ihn selbst.</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Save report</source>
        <translation>Bericht sichern</translation>
    </message>
</context>
<context>
    <name>DiscoverTab</name>
    <message>
        <source>Search Hugging Face; empty shows what we recommend</source>
        <translation>Hugging Face durchsuchen; leer zeigt unsere Empfehlungen</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>Suchen</translation>
    </message>
    <message>
        <source>Order</source>
        <translation>Reihenfolge</translation>
    </message>
    <message>
        <source>Fits this computer</source>
        <translation>Passt auf diesen Computer</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Herunterladen</translation>
    </message>
    <message>
        <source>File</source>
        <translation>Datei</translation>
    </message>
    <message>
        <source>Searching …</source>
        <translation>Suche läuft …</translation>
    </message>
    <message>
        <source>The list is from before.</source>
        <translation>Die Liste ist von vorher.</translation>
    </message>
    <message>
        <source>Nothing on Hugging Face is called {0}.</source>
        <translation>Auf Hugging Face heißt nichts {0}.</translation>
    </message>
</context>
<context>
    <name>DownloadsTab</name>
    <message>
        <source>Downloads</source>
        <translation>Downloads</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Remove from list</source>
        <translation>Aus der Liste entfernen</translation>
    </message>
    <message>
        <source>Most megabytes a second</source>
        <translation>Höchstens Megabyte je Sekunde</translation>
    </message>
    <message>
        <source>Applies to downloads that start or resume from now on.</source>
        <translation>Gilt für Downloads, die ab jetzt beginnen oder fortgesetzt werden.</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>unbegrenzt</translation>
    </message>
    <message>
        <source> MB/s at most</source>
        <translation> MB/s höchstens</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
</context>
<context>
    <name>EmptyState</name>
    <message>
        <source>See which larger models fit this computer …</source>
        <translation>Größere Modelle ansehen, die auf diesen Computer passen …</translation>
    </message>
    <message>
        <source>What is this?</source>
        <translation>Was ist das?</translation>
    </message>
    <message>
        <source>Got it</source>
        <translation>Verstanden</translation>
    </message>
    <message>
        <source>Sends this prompt</source>
        <translation>Sendet diese Frage</translation>
    </message>
</context>
<context>
    <name>ErrorCard</name>
    <message>
        <source>Dismiss</source>
        <translation>Ausblenden</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal</translation>
    </message>
</context>
<context>
    <name>Figures</name>
    <message>
        <source>Mean acceptance length τ: tokens from decode steps ÷ decode steps, the token that the model adds itself in each step included. Plain decoding has 1.</source>
        <translation>Mittlere Annahmelänge τ: Token aus Schritten ÷ Schritte, mit dem Token, das das Modell in jedem Schritt selbst hinzufügt. Ohne Vorausraten ist sie 1.</translation>
    </message>
    <message>
        <source>end of answer</source>
        <translation>Ende der Antwort</translation>
    </message>
    <message>
        <source>stop string</source>
        <translation>Endtext</translation>
    </message>
    <message>
        <source>token limit</source>
        <translation>Längengrenze</translation>
    </message>
    <message>
        <source>context full</source>
        <translation>Kontext voll</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>angehalten</translation>
    </message>
    <message>
        <source>The model ended the answer itself.</source>
        <translation>Das Modell hat die Antwort selbst beendet.</translation>
    </message>
    <message>
        <source>The answer reached a text at which it was asked to stop.</source>
        <translation>Die Antwort hat einen Text erreicht, an dem sie enden sollte.</translation>
    </message>
    <message>
        <source>The answer reached the largest number of tokens it may have.</source>
        <translation>Die Antwort hat so viele Token, wie sie höchstens haben darf.</translation>
    </message>
    <message>
        <source>Conversation and answer fill the model&apos;s context.</source>
        <translation>Gespräch und Antwort füllen den Kontext des Modells.</translation>
    </message>
    <message>
        <source>You stopped the answer.</source>
        <translation>Sie haben die Antwort angehalten.</translation>
    </message>
    <message>
        <source>{number} tokens/s</source>
        <translation>{number} Token/s</translation>
    </message>
    <message>
        <source>{number} tokens/step</source>
        <translation>{number} Token/Schritt</translation>
    </message>
    <message>
        <source>With prefill: {number} tokens/s.</source>
        <translation>Mit dem Lesen: {number} Token/s.</translation>
    </message>
    <message>
        <source>Tokens from decode steps ÷ seconds of decoding.</source>
        <translation>Token aus Schritten ÷ deren Sekunden.</translation>
    </message>
    <message>
        <source>From the start of the request to the first token of the answer: {prompt} prompt tokens, of which {cached} were still in the cache.</source>
        <translation>Vom Absenden bis zum ersten Token der Antwort: {prompt} Token zu lesen, davon {cached} noch im Zwischenspeicher.</translation>
    </message>
    <message>
        <source>{time} to first token</source>
        <translation>{time} bis zum ersten Token</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Tokens per step</source>
        <translation>Token je Schritt</translation>
    </message>
    <message>
        <source>Time to first token</source>
        <translation>Zeit bis zum ersten Token</translation>
    </message>
    <message>
        <source>Stop reason</source>
        <translation>Grund des Endes</translation>
    </message>
    <message>
        <source>τ × T(1) ÷ mean time of a step. T(1) is the time of a step of plain decoding at this length, measured on this machine.</source>
        <translation>τ × T(1) ÷ mittlere Zeit eines Schrittes. T(1) ist die Zeit eines Schrittes ohne Vorausraten bei dieser Länge, auf diesem Rechner gemessen.</translation>
    </message>
    <message>
        <source>{factor}× plain</source>
        <translation>{factor}× einfach</translation>
    </message>
    <message>
        <source> (drafts rested)</source>
        <translation> (Vorausraten ruhte)</translation>
    </message>
    <message>
        <source> In {rested} of {all} steps nothing was drafted: drafting gained less than 5 % just then. It is tried again from time to time.</source>
        <translation> In {rested} von {all} Schritten wurde nichts vorausgeraten: Es brachte gerade weniger als 5 %. Von Zeit zu Zeit wird es wieder versucht.</translation>
    </message>
    <message>
        <source>Speed-up</source>
        <translation>Beschleunigung</translation>
    </message>
</context>
<context>
    <name>FilesStep</name>
    <message>
        <source>Where your files are</source>
        <translation>Wo Ihre Dateien sind</translation>
    </message>
    <message>
        <source>Conversations, settings and models lie in these folders. Other places can be chosen in the settings (Ctrl+,).</source>
        <translation>Gespräche, Einstellungen und Modelle liegen in diesen Ordnern. Andere Orte wählen Sie in den Einstellungen (Strg+,).</translation>
    </message>
    <message>
        <source>Nothing is sent anywhere by itself. Hugging Face is asked when you search.</source>
        <translation>Nichts wird von selbst verschickt. Hugging Face wird gefragt, wenn Sie suchen.</translation>
    </message>
</context>
<context>
    <name>FindBar</name>
    <message>
        <source>Find in this conversation</source>
        <translation>In diesem Gespräch suchen</translation>
    </message>
    <message>
        <source>Previous (Shift+Enter)</source>
        <translation>Vorige Stelle (Umschalt+Eingabe)</translation>
    </message>
    <message>
        <source>Next (Enter)</source>
        <translation>Nächste Stelle (Eingabe)</translation>
    </message>
    <message>
        <source>Close (Esc)</source>
        <translation>Schließen (Esc)</translation>
    </message>
    <message>
        <source>{n} of {all}</source>
        <translation>{n} von {all}</translation>
    </message>
    <message>
        <source>Not found</source>
        <translation>Nicht gefunden</translation>
    </message>
</context>
<context>
    <name>FolderEditor</name>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>The usual folder</source>
        <translation>Der übliche Ordner</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Wählen…</translation>
    </message>
    <message>
        <source>Usual</source>
        <translation>Üblich</translation>
    </message>
    <message>
        <source>Choose a folder</source>
        <translation>Ordner wählen</translation>
    </message>
</context>
<context>
    <name>Header</name>
    <message>
        <source>Who guesses the next tokens. Guesses make answers faster; the words are the same.</source>
        <translation>Wer die nächsten Token vorausrät. Das macht Antworten schneller; die Worte bleiben dieselben.</translation>
    </message>
    <message>
        <source>Manage models …</source>
        <translation>Modelle verwalten …</translation>
    </message>
    <message>
        <source>Speed-up</source>
        <translation>Beschleunigung</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neues Gespräch</translation>
    </message>
    <message>
        <source>Start a new conversation (Ctrl+N)</source>
        <translation>Neues Gespräch beginnen (Strg+N)</translation>
    </message>
    <message>
        <source>Settings of this chat</source>
        <translation>Einstellungen dieses Gesprächs</translation>
    </message>
    <message>
        <source>Settings of this chat (Ctrl+Shift+P)</source>
        <translation>Einstellungen dieses Gesprächs (Strg+Umschalt+P)</translation>
    </message>
    <message>
        <source>Menu</source>
        <translation>Menü</translation>
    </message>
    <message>
        <source>Panels about answers, models, theme, About</source>
        <translation>Ansichten zu den Antworten, Modelle, Farben, Über</translation>
    </message>
    <message>
        <source>Record steps</source>
        <translation>Schritte aufzeichnen</translation>
    </message>
</context>
<context>
    <name>HistoryKeeper</name>
    <message>
        <source>Conversation</source>
        <translation>Unterhaltung</translation>
    </message>
</context>
<context>
    <name>InstalledTab</name>
    <message>
        <source>Installed</source>
        <translation>Installiert</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Medusa heads</source>
        <translation>Medusa-Köpfe</translation>
    </message>
    <message>
        <source>Heads</source>
        <translation>Köpfe</translation>
    </message>
    <message>
        <source>Verify</source>
        <translation>Überprüfen</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Show folder</source>
        <translation>Ordner zeigen</translation>
    </message>
    <message>
        <source>Import model…</source>
        <translation>Modell importieren…</translation>
    </message>
    <message>
        <source>Delete quantized copies</source>
        <translation>Quantisierte Kopien löschen</translation>
    </message>
    <message>
        <source>They only make the next load of a model faster.</source>
        <translation>Sie machen nur das nächste Laden eines Modells schneller.</translation>
    </message>
    <message>
        <source>Download location…</source>
        <translation>Speicherort…</translation>
    </message>
    <message>
        <source>The folder for downloads; other programs share the default one.</source>
        <translation>Der Ordner für Downloads; den üblichen teilen sich auch andere Programme.</translation>
    </message>
    <message>
        <source>Folder…</source>
        <translation>Ordner…</translation>
    </message>
    <message>
        <source>GGUF file…</source>
        <translation>GGUF-Datei…</translation>
    </message>
    <message>
        <source>Nothing is downloaded yet: see Discover, or import a model.</source>
        <translation>Noch ist nichts heruntergeladen: siehe Entdecken, oder importieren Sie ein Modell.</translation>
    </message>
    <message>
        <source>Remove from list</source>
        <translation>Aus der Liste entfernen</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keine</translation>
    </message>
    <message>
        <source>its own</source>
        <translation>die eigenen</translation>
    </message>
    <message>
        <source>May not fit. Load anyway?</source>
        <translation>Passt vielleicht nicht. Trotzdem laden?</translation>
    </message>
    <message>
        <source>Verified: all files are intact.</source>
        <translation>Überprüft: Alle Dateien sind unversehrt.</translation>
    </message>
    <message>
        <source>Delete {0} ({1})?</source>
        <translation>{0} ({1}) löschen?</translation>
    </message>
    <message>
        <source>Remove {0} from the list?</source>
        <translation>{0} aus der Liste entfernen?</translation>
    </message>
    <message>
        <source>It is loaded now: the built-in model takes its place.</source>
        <translation>Es ist gerade geladen: Das eingebaute Modell tritt an seine Stelle.</translation>
    </message>
    <message>
        <source>Folder of a model or of heads</source>
        <translation>Ordner eines Modells oder von Köpfen</translation>
    </message>
    <message>
        <source>GGUF file</source>
        <translation>GGUF-Datei</translation>
    </message>
    <message>
        <source>GGUF files (*.gguf)</source>
        <translation>GGUF-Dateien (*.gguf)</translation>
    </message>
</context>
<context>
    <name>Library</name>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>Auf diesem Computer</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Herunterladen</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>Lizenz</translation>
    </message>
    <message>
        <source>Most downloads</source>
        <translation>Meiste Downloads</translation>
    </message>
    <message>
        <source>Most likes</source>
        <translation>Meiste Likes</translation>
    </message>
    <message>
        <source>Newest</source>
        <translation>Neueste</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>Fortschritt</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>Tempo</translation>
    </message>
    <message>
        <source>Left</source>
        <translation>Rest</translation>
    </message>
    <message>
        <source>waits for its turn</source>
        <translation>wartet</translation>
    </message>
    <message>
        <source>downloading</source>
        <translation>lädt herunter</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>angehalten</translation>
    </message>
    <message>
        <source>verifying</source>
        <translation>wird überprüft</translation>
    </message>
    <message>
        <source>ready</source>
        <translation>bereit</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>gescheitert</translation>
    </message>
    <message>
        <source>cancelled</source>
        <translation>abgebrochen</translation>
    </message>
    <message>
        <source>stalled</source>
        <translation>stockt</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>What it is</source>
        <translation>Was es ist</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>Platte</translation>
    </message>
    <message>
        <source>model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>model with heads</source>
        <translation>Modell mit Köpfen</translation>
    </message>
    <message>
        <source>Medusa heads</source>
        <translation>Medusa-Köpfe</translation>
    </message>
    <message>
        <source>not usable</source>
        <translation>nicht nutzbar</translation>
    </message>
    <message>
        <source>incomplete</source>
        <translation>unvollständig</translation>
    </message>
    <message>
        <source>built-in demo</source>
        <translation>eingebautes Demo</translation>
    </message>
    <message>
        <source>{0} · loaded</source>
        <translation>{0} · geladen</translation>
    </message>
    <message>
        <source>Fits</source>
        <translation>Passt</translation>
    </message>
    <message>
        <source>Just fits</source>
        <translation>Passt knapp</translation>
    </message>
    <message>
        <source>Too large</source>
        <translation>Zu groß</translation>
    </message>
    <message>
        <source>{0}, {1} free</source>
        <translation>{0}, {1} frei</translation>
    </message>
    <message>
        <source>{0}: needs {1} more than the {2} here</source>
        <translation>{0}: braucht {1} mehr als die {2} hier</translation>
    </message>
    <message>
        <source>unchanged</source>
        <translation>unverändert</translation>
    </message>
    <message>
        <source>({0}-bit)</source>
        <translation>({0} Bit)</translation>
    </message>
</context>
<context>
    <name>LibraryDialog</name>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Offline: nothing leaves this computer</source>
        <translation>Offline: nichts verlässt diesen Computer</translation>
    </message>
    <message>
        <source>Settings…</source>
        <translation>Einstellungen…</translation>
    </message>
    <message>
        <source>Device, Hub token, download location, idle time</source>
        <translation>Gerät, Hub-Token, Speicherort, Ruhezeit</translation>
    </message>
    <message>
        <source>Discover</source>
        <translation>Entdecken</translation>
    </message>
    <message>
        <source>Installed</source>
        <translation>Installiert</translation>
    </message>
    <message>
        <source>Downloads</source>
        <translation>Downloads</translation>
    </message>
</context>
<context>
    <name>MemoryBar</name>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
</context>
<context>
    <name>MemoryWatch</name>
    <message>
        <source>{kind} · {used} GiB used, {free} free · {name}</source>
        <translation>{kind} · {used} GiB belegt, {free} frei · {name}</translation>
    </message>
    <message>
        <source>{name} computes the answers. All programs together use {used} GiB of its {all} GiB of memory.</source>
        <translation>{name} rechnet die Antworten. Alle Programme zusammen belegen {used} GiB von {all} GiB Speicher.</translation>
    </message>
</context>
<context>
    <name>ModelStep</name>
    <message>
        <source>Choose a model</source>
        <translation>Modell wählen</translation>
    </message>
    <message>
        <source>A small demo model is built in, and ready: it tells simple stories. For more, download one of these, now or later under Models.</source>
        <translation>Ein kleines Demomodell ist eingebaut und bereit: Es erzählt einfache Geschichten. Für mehr laden Sie eines von diesen herunter, jetzt oder später unter Modelle.</translation>
    </message>
    <message>
        <source>Models that fit</source>
        <translation>Passende Modelle</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>Auf diesem Computer</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Herunterladen</translation>
    </message>
    <message>
        <source>Checking what fits this computer …</source>
        <translation>Es wird geprüft, was auf diesen Computer passt …</translation>
    </message>
    <message>
        <source>Built in, ready</source>
        <translation>Eingebaut, bereit</translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message>
        <source>Hub token</source>
        <translation>Hub-Token</translation>
    </message>
    <message>
        <source>Some models need a Hugging Face account and its token.</source>
        <translation>Manche Modelle brauchen ein Konto bei Hugging Face und dessen Token.</translation>
    </message>
</context>
<context>
    <name>Numbers</name>
    <message>
        <source>From {low} to {high}.</source>
        <translation>Von {low} bis {high}.</translation>
    </message>
</context>
<context>
    <name>Palette</name>
    <message>
        <source>Find a command</source>
        <translation>Befehl suchen</translation>
    </message>
    <message>
        <source>Type a command or a name</source>
        <translation>Befehl oder Name eingeben</translation>
    </message>
    <message>
        <source>What was found</source>
        <translation>Gefundenes</translation>
    </message>
    <message>
        <source>No match.</source>
        <translation>Kein Treffer.</translation>
    </message>
</context>
<context>
    <name>PresetBar</name>
    <message>
        <source>Your own settings</source>
        <translation>Eigene Einstellungen</translation>
    </message>
    <message>
        <source>Presets (*.json)</source>
        <translation>Voreinstellungen (*.json)</translation>
    </message>
    <message>
        <source>Preset</source>
        <translation>Voreinstellung</translation>
    </message>
    <message>
        <source>Settings under a name. Exact, Balanced and Creative set the sampling.</source>
        <translation>Einstellungen unter einem Namen. Exakt, Ausgewogen und Kreativ setzen die Auswahl der Token.</translation>
    </message>
    <message>
        <source>Preset menu</source>
        <translation>Menü der Voreinstellungen</translation>
    </message>
    <message>
        <source>Save, rename, copy, delete, import or export presets</source>
        <translation>Voreinstellungen speichern, umbenennen, kopieren, löschen, einlesen oder ausgeben</translation>
    </message>
    <message>
        <source>Save as …</source>
        <translation>Speichern als …</translation>
    </message>
    <message>
        <source>Rename …</source>
        <translation>Umbenennen …</translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>Löschen</translation>
    </message>
    <message>
        <source>Import …</source>
        <translation>Einlesen …</translation>
    </message>
    <message>
        <source>Export …</source>
        <translation>Ausgeben …</translation>
    </message>
    <message>
        <source>Use for new chats</source>
        <translation>Für neue Gespräche nehmen</translation>
    </message>
    <message>
        <source>Save preset</source>
        <translation>Voreinstellung speichern</translation>
    </message>
    <message>
        <source>My preset</source>
        <translation>Meine Voreinstellung</translation>
    </message>
    <message>
        <source>Rename preset</source>
        <translation>Voreinstellung umbenennen</translation>
    </message>
    <message>
        <source>Import presets</source>
        <translation>Voreinstellungen einlesen</translation>
    </message>
    <message>
        <source>Export preset</source>
        <translation>Voreinstellung ausgeben</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
</context>
<context>
    <name>PromptEdit</name>
    <message>
        <source>Ask something…</source>
        <translation>Fragen Sie etwas…</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>Nachricht</translation>
    </message>
    <message>
        <source>Enter sends, Shift and Enter start a new line.</source>
        <translation>Eingabe sendet, Umschalt und Eingabe beginnen eine neue Zeile.</translation>
    </message>
</context>
<context>
    <name>QueuedRow</name>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Sent after this answer: {words}</source>
        <translation>Wird nach dieser Antwort gesendet: {words}</translation>
    </message>
</context>
<context>
    <name>Remedies</name>
    <message>
        <source>Save and restart</source>
        <translation>Sichern und neu starten</translation>
    </message>
    <message>
        <source>Load with {0}</source>
        <translation>Mit {0} laden</translation>
    </message>
    <message>
        <source>Load with a context of {0} tokens</source>
        <translation>Mit {0} Token Kontext laden</translation>
    </message>
</context>
<context>
    <name>Row</name>
    <message>
        <source>{meaning} The default is {default}.</source>
        <translation>{meaning} Üblich ist: {default}.</translation>
    </message>
    <message>
        <source>Reset {name}</source>
        <translation>{name} zurücksetzen</translation>
    </message>
    <message>
        <source>Back to the default: {default}</source>
        <translation>Zurück zum Üblichen: {default}</translation>
    </message>
</context>
<context>
    <name>SeedBox</name>
    <message>
        <source>new</source>
        <translation>neu</translation>
    </message>
</context>
<context>
    <name>Setting</name>
    <message>
        <source>Temperature</source>
        <translation>Temperatur</translation>
    </message>
    <message>
        <source>Below 1, likely tokens become even likelier; above 1, rare tokens become likelier.</source>
        <translation>Unter 1 werden wahrscheinliche Token noch wahrscheinlicher, über 1 werden es seltene.</translation>
    </message>
    <message>
        <source>The higher it is, the more guesses miss.</source>
        <translation>Je höher sie ist, desto öfter geht das Vorausraten fehl.</translation>
    </message>
    <message>
        <source>off</source>
        <translation>aus</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Draws only from this many of the likeliest tokens.</source>
        <translation>Lost nur unter so vielen der wahrscheinlichsten Token aus.</translation>
    </message>
    <message>
        <source>Fewer to draw from: guesses are right more often.</source>
        <translation>Weniger Auswahl: Es wird öfter richtig vorausgeraten.</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Draws among the likeliest tokens that together reach this probability.</source>
        <translation>Lost unter den wahrscheinlichsten Token aus, die zusammen diese Wahrscheinlichkeit erreichen.</translation>
    </message>
    <message>
        <source>Min-p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>Draws among tokens at least this share as likely as the best one.</source>
        <translation>Lost unter Token aus, die mindestens diesen Anteil so wahrscheinlich sind wie das beste.</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>Wiederholungsmalus</translation>
    </message>
    <message>
        <source>Makes tokens rarer that the chat or the answer already holds.</source>
        <translation>Macht Token seltener, die im Gespräch oder in der Antwort schon vorkommen.</translation>
    </message>
    <message>
        <source>Guesses don&apos;t know of it: the further from 1, the more of them miss.</source>
        <translation>Das Vorausraten weiß nichts davon: Je weiter von 1 entfernt, desto öfter geht es fehl.</translation>
    </message>
    <message>
        <source>Presence penalty</source>
        <translation>Vorkommensmalus</translation>
    </message>
    <message>
        <source>Makes tokens rarer that the answer already holds.</source>
        <translation>Macht Token seltener, die in der Antwort schon vorkommen.</translation>
    </message>
    <message>
        <source>Guesses don&apos;t know of it: the further from 0, the more of them miss.</source>
        <translation>Das Vorausraten weiß nichts davon: Je weiter von 0 entfernt, desto öfter geht es fehl.</translation>
    </message>
    <message>
        <source>Frequency penalty</source>
        <translation>Häufigkeitsmalus</translation>
    </message>
    <message>
        <source>Makes tokens rarer each time the answer uses them.</source>
        <translation>Macht Token mit jeder Verwendung in der Antwort seltener.</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>Längste Antwort</translation>
    </message>
    <message>
        <source>Ends an answer after this many tokens; without a limit it may fill the context.</source>
        <translation>Beendet eine Antwort nach so vielen Token; ohne Grenze darf sie den Kontext füllen.</translation>
    </message>
    <message>
        <source>Drafting does not depend on it.</source>
        <translation>Das Vorausraten hängt nicht davon ab.</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>ohne</translation>
    </message>
    <message>
        <source>Threshold ε</source>
        <translation>Schwelle ε</translation>
    </message>
    <message>
        <source>A guess is accepted where the model finds it likelier than this.</source>
        <translation>Geratenes wird angenommen, wo das Modell es für wahrscheinlicher hält als dies.</translation>
    </message>
    <message>
        <source>Lower accepts more guesses: faster, and further from the model&apos;s own words.</source>
        <translation>Niedriger nimmt mehr Geratenes an: schneller, und weiter weg von den eigenen Worten des Modells.</translation>
    </message>
    <message>
        <source>Leniency δ</source>
        <translation>Nachsicht δ</translation>
    </message>
    <message>
        <source>Where the model itself is unsure, less than ε is enough: δ times its certainty.</source>
        <translation>Wo das Modell selbst unsicher ist, genügt weniger als ε: δ mal seine Sicherheit.</translation>
    </message>
    <message>
        <source>Tree rows</source>
        <translation>Baumzeilen</translation>
    </message>
    <message>
        <source>The most tokens that the model checks in one step, the last decided one included.</source>
        <translation>So viele Token prüft das Modell höchstens in einem Schritt, das zuletzt entschiedene eingeschlossen.</translation>
    </message>
    <message>
        <source>More rows catch more guesses but make each step slower; automatic weighs both.</source>
        <translation>Mehr Zeilen treffen öfter, machen aber jeden Schritt langsamer; die Automatik wägt beides ab.</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>selbst</translation>
    </message>
    <message>
        <source>Greedy always takes the likeliest token, so there is nothing to draw.</source>
        <translation>Greedy nimmt immer das wahrscheinlichste Token, es gibt nichts auszulosen.</translation>
    </message>
    <message>
        <source>Only Typical uses this: it accepts guesses that are merely likely.</source>
        <translation>Nur Typical braucht dies: Es nimmt auch an, was bloß wahrscheinlich ist.</translation>
    </message>
    <message>
        <source>Plain decoding guesses nothing.</source>
        <translation>Ohne Beschleunigung wird nichts vorausgeraten.</translation>
    </message>
    <message>
        <source>Exact</source>
        <translation>Exakt</translation>
    </message>
    <message>
        <source>The likeliest token each time: the same question gets the same answer.</source>
        <translation>Jedes Mal das wahrscheinlichste Token: Dieselbe Frage bekommt dieselbe Antwort.</translation>
    </message>
    <message>
        <source>Balanced</source>
        <translation>Ausgewogen</translation>
    </message>
    <message>
        <source>Draws among likely tokens: varied, and still to the point.</source>
        <translation>Lost unter wahrscheinlichen Token aus: abwechslungsreich und doch bei der Sache.</translation>
    </message>
    <message>
        <source>Creative</source>
        <translation>Kreativ</translation>
    </message>
    <message>
        <source>Lets rarer tokens come: for stories and ideas.</source>
        <translation>Lässt seltenere Token zu: für Geschichten und Einfälle.</translation>
    </message>
    <message>
        <source>All methods</source>
        <translation>Alle Verfahren</translation>
    </message>
    <message>
        <source>All sources of drafts that this model has, together in one tree.</source>
        <translation>Alles, womit dieses Modell vorausraten kann, zusammen in einem Baum.</translation>
    </message>
    <message>
        <source>Medusa heads</source>
        <translation>Medusa-Köpfe</translation>
    </message>
    <message>
        <source>The heads&apos; guesses, in one tree for all steps.</source>
        <translation>Was die Köpfe raten, in einem Baum für alle Schritte.</translation>
    </message>
    <message>
        <source>Medusa, one chain</source>
        <translation>Medusa, eine Kette</translation>
    </message>
    <message>
        <source>Each head&apos;s best guess, without branches.</source>
        <translation>Das Beste jedes Kopfes, ohne Zweige.</translation>
    </message>
    <message>
        <source>Medusa, dynamic tree</source>
        <translation>Medusa, wachsender Baum</translation>
    </message>
    <message>
        <source>The heads&apos; guesses, in a tree that is larger where the heads are unsure.</source>
        <translation>Was die Köpfe raten, in einem Baum, der größer ist, wo sie unsicher sind.</translation>
    </message>
    <message>
        <source>Prompt lookup</source>
        <translation>Nachschlagen im Text</translation>
    </message>
    <message>
        <source>A search for the same words earlier in the text.</source>
        <translation>Sucht dieselben Worte weiter oben im Text.</translation>
    </message>
    <message>
        <source>None (plain)</source>
        <translation>Keine</translation>
    </message>
    <message>
        <source>No guesses: one token per step.</source>
        <translation>Nichts wird geraten: ein Token je Schritt.</translation>
    </message>
    <message>
        <source>Phrases and lookup</source>
        <translation>Wendungen und Nachschlagen</translation>
    </message>
    <message>
        <source>A table of what the model often says, and a search for the same words in the text.</source>
        <translation>Eine Tabelle dessen, was das Modell oft sagt, und eine Suche nach denselben Worten im Text.</translation>
    </message>
    <message>
        <source>Greedy</source>
        <translation>Greedy</translation>
    </message>
    <message>
        <source>Takes the likeliest token each time.</source>
        <translation>Nimmt jedes Mal das wahrscheinlichste Token.</translation>
    </message>
    <message>
        <source>Sample</source>
        <translation>Auslosen</translation>
    </message>
    <message>
        <source>Draws each token by its probability.</source>
        <translation>Lost jedes Token nach seiner Wahrscheinlichkeit aus.</translation>
    </message>
    <message>
        <source>Typical (creative, not exact)</source>
        <translation>Typical (kreativ, nicht exakt)</translation>
    </message>
    <message>
        <source>Also keeps guesses that are merely likely: more of them, in other words.</source>
        <translation>Behält auch, was bloß wahrscheinlich ist: mehr davon, in anderen Worten.</translation>
    </message>
</context>
<context>
    <name>Settings</name>
    <message>
        <source>Like the system</source>
        <translation>Wie das System</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>Hell</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>Dunkel</translation>
    </message>
    <message>
        <source>High contrast</source>
        <translation>Hoher Kontrast</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>Farben</translation>
    </message>
    <message>
        <source>The colours of the window.</source>
        <translation>Die Farben des Fensters.</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Makes text and everything else larger.</source>
        <translation>Macht Text und alles andere größer.</translation>
    </message>
    <message>
        <source>Never</source>
        <translation>Nie</translation>
    </message>
    <message>
        <source>Unload when idle</source>
        <translation>Bei Ruhe entladen</translation>
    </message>
    <message>
        <source>An idle model frees its memory; the next message loads it again.</source>
        <translation>Ein ruhendes Modell gibt seinen Speicher frei; die nächste Nachricht lädt es wieder.</translation>
    </message>
    <message>
        <source>Download location</source>
        <translation>Speicherort für Downloads</translation>
    </message>
    <message>
        <source>Empty: the folder that other programs share.</source>
        <translation>Leer: der Ordner, den auch andere Programme benutzen.</translation>
    </message>
    <message>
        <source>Run on</source>
        <translation>Rechnen auf</translation>
    </message>
    <message>
        <source>What models compute on.</source>
        <translation>Worauf Modelle rechnen.</translation>
    </message>
    <message>
        <source>Record steps</source>
        <translation>Schritte aufzeichnen</translation>
    </message>
    <message>
        <source>Tree and Steps show the last 20,000 steps; takes up to 31 MB.</source>
        <translation>Baum und Schritte zeigen die letzten 20.000 Schritte; das braucht bis zu 31 MB.</translation>
    </message>
    <message>
        <source>Offline</source>
        <translation>Offline</translation>
    </message>
    <message>
        <source>Nothing leaves this computer.</source>
        <translation>Nichts verlässt diesen Computer.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>Sprache</translation>
    </message>
    <message>
        <source>Takes effect at the next start.</source>
        <translation>Gilt ab dem nächsten Start.</translation>
    </message>
    <message>
        <source>Font</source>
        <translation>Schrift</translation>
    </message>
    <message>
        <source>The font of all text but code.</source>
        <translation>Die Schrift für alles außer Code.</translation>
    </message>
    <message>
        <source>Open where it was</source>
        <translation>Öffnen, wo es war</translation>
    </message>
    <message>
        <source>The window keeps its place, its size and its open panels.</source>
        <translation>Das Fenster behält Ort, Größe und offene Bereiche.</translation>
    </message>
    <message>
        <source>General</source>
        <translation>Allgemein</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>Aussehen</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Privacy and storage</source>
        <translation>Datenschutz und Speicher</translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
    <message>
        <source>Settings</source>
        <translation>Einstellungen</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>ShortcutsPage</name>
    <message>
        <source>Find a command</source>
        <translation>Befehl suchen</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>Befehl</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>Tasten</translation>
    </message>
    <message>
        <source>New keys</source>
        <translation>Neue Tasten</translation>
    </message>
    <message>
        <source>Use these keys</source>
        <translation>Diese Tasten nehmen</translation>
    </message>
    <message>
        <source>No keys</source>
        <translation>Keine Tasten</translation>
    </message>
    <message>
        <source>Usual keys</source>
        <translation>Übliche Tasten</translation>
    </message>
    <message>
        <source>Reset all</source>
        <translation>Alle zurücksetzen</translation>
    </message>
    <message>
        <source>{keys} belongs to “{names}”, which would lose it.</source>
        <translation>{keys} gehört zu „{names}“ und ginge dort verloren.</translation>
    </message>
    <message>
        <source>These keys are free.</source>
        <translation>Diese Tasten sind frei.</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>Search conversations</source>
        <translation>Gespräche durchsuchen</translation>
    </message>
    <message>
        <source>Empty trash …</source>
        <translation>Papierkorb leeren …</translation>
    </message>
</context>
<context>
    <name>StepsStrip</name>
    <message>
        <source>No marks</source>
        <translation>Ohne Marken</translation>
    </message>
    <message>
        <source>Mark accepted</source>
        <translation>Angenommenes</translation>
    </message>
    <message>
        <source>Mark by source</source>
        <translation>Nach Quelle</translation>
    </message>
    <message>
        <source>too small to gain</source>
        <translation>zu klein für Gewinn</translation>
    </message>
    <message>
        <source>A step of this model takes less than 2 ms, so drafting can&apos;t save time that anybody would notice. Tokens per step show what it saves with a large model.</source>
        <translation>Ein Schritt dieses Modells dauert unter 2 ms; Vorausraten kann keine Zeit sparen, die jemand bemerkt. Token je Schritt zeigen, was es bei einem großen Modell spart.</translation>
    </message>
    <message>
        <source>Tokens of the answer so far ÷ seconds of its decoding steps.</source>
        <translation>Bisherige Token der Antwort ÷ Sekunden ihrer Schritte.</translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>Schritte</translation>
    </message>
    <message>
        <source>Marks in the text</source>
        <translation>Marken im Text</translation>
    </message>
    <message>
        <source>Accepted tokens have a tint and an underline: one for all, or that of the source that guessed them. The model chose all others itself. The text is the same either way.</source>
        <translation>Angenommene Token sind getönt und unterstrichen: alle gleich, oder wie die Quelle, die sie geraten hat. Alle anderen hat das Modell selbst gewählt. Der Text ist in jedem Fall derselbe.</translation>
    </message>
    <message>
        <source>Guesses accepted, by source</source>
        <translation>Angenommen, nach Quelle</translation>
    </message>
    <message>
        <source>{speed} tokens/s ·</source>
        <translation>{speed} Token/s ·</translation>
    </message>
    <message>
        <source>{mean} tokens/step</source>
        <translation>{mean} Token/Schritt</translation>
    </message>
    <message>
        <source>no steps yet</source>
        <translation>noch keine Schritte</translation>
    </message>
</context>
<context>
    <name>StoragePage</name>
    <message>
        <source>Medusa Chat sends nothing by itself: no statistics, no error reports, no search for updates. It asks Hugging Face when you search for or download a model.</source>
        <translation>Medusa Chat sendet nichts von selbst: keine Statistik, keine Fehlerberichte, keine Suche nach Updates. Hugging Face wird gefragt, wenn Sie ein Modell suchen oder herunterladen.</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>Ordner öffnen</translation>
    </message>
    <message>
        <source>Open folder: {0}</source>
        <translation>Ordner öffnen: {0}</translation>
    </message>
    <message>
        <source>Diagnostics and report…</source>
        <translation>Diagnose und Bericht…</translation>
    </message>
</context>
<context>
    <name>TemplatePreview</name>
    <message>
        <source>The prompt as the model reads it: the chat in the form of the model&apos;s own template.</source>
        <translation>Was das Modell liest: das Gespräch in der Form seiner eigenen Vorlage.</translation>
    </message>
    <message>
        <source>Rendered prompt</source>
        <translation>Fertiger Text für das Modell</translation>
    </message>
    <message>
        <source>Write a message to see it here.</source>
        <translation>Schreiben Sie eine Nachricht, um ihn hier zu sehen.</translation>
    </message>
</context>
<context>
    <name>TokenBox</name>
    <message>
        <source>Hub token</source>
        <translation>Hub-Token</translation>
    </message>
    <message>
        <source>Save token</source>
        <translation>Token sichern</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>Prüfen</translation>
    </message>
    <message>
        <source>Asks Hugging Face once whose token this is.</source>
        <translation>Fragt Hugging Face einmal, wessen Token das ist.</translation>
    </message>
    <message>
        <source>A token is saved</source>
        <translation>Ein Token ist gespeichert</translation>
    </message>
    <message>
        <source>No token is saved</source>
        <translation>Kein Token gespeichert</translation>
    </message>
    <message>
        <source>The token can&apos;t be saved: {0}</source>
        <translation>Das Token kann nicht gesichert werden: {0}</translation>
    </message>
    <message>
        <source>Token saved; only you can read it.</source>
        <translation>Token gesichert; nur Sie können es lesen.</translation>
    </message>
    <message>
        <source>The token can&apos;t be removed: {0}</source>
        <translation>Das Token kann nicht entfernt werden: {0}</translation>
    </message>
    <message>
        <source>Token removed.</source>
        <translation>Token entfernt.</translation>
    </message>
    <message>
        <source>Asking Hugging Face …</source>
        <translation>Hugging Face wird gefragt …</translation>
    </message>
    <message>
        <source>The token works: it is {0}’s.</source>
        <translation>Das Token gilt: Es gehört {0}.</translation>
    </message>
</context>
<context>
    <name>WelcomeDialog</name>
    <message>
        <source>First steps</source>
        <translation>Erste Schritte</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>Zurück</translation>
    </message>
    <message>
        <source>Skip</source>
        <translation>Überspringen</translation>
    </message>
    <message>
        <source>Start chatting</source>
        <translation>Loslegen</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>Weiter</translation>
    </message>
    <message>
        <source>Step {0} of {1}</source>
        <translation>Schritt {0} von {1}</translation>
    </message>
</context>
<context>
    <name>WhatStep</name>
    <message>
        <source>Chat on your own computer</source>
        <translation>Chatten auf dem eigenen Computer</translation>
    </message>
    <message>
        <source>Medusa Chat runs a language model here. What you write stays on this computer.
Small extra heads guess the next words, and the model checks all guesses in one step. So it answers faster, with the same words.
Guesses that were right are tinted and underlined, so that you can watch it work.</source>
        <translation>Medusa Chat führt ein Sprachmodell auf diesem Computer aus. Was Sie schreiben, bleibt hier.
Kleine Zusatzköpfe raten die nächsten Wörter, und das Modell prüft alle in einem Schritt. So antwortet es schneller, mit denselben Wörtern.
Richtig Geratenes ist getönt und unterstrichen, sodass Sie zusehen können.</translation>
    </message>
</context>
<context>
    <name>WindowCommands</name>
    <message>
        <source>New chat</source>
        <translation>Neues Gespräch</translation>
    </message>
    <message>
        <source>Find in this conversation</source>
        <translation>In diesem Gespräch suchen</translation>
    </message>
    <message>
        <source>Find next</source>
        <translation>Weitersuchen</translation>
    </message>
    <message>
        <source>Find previous</source>
        <translation>Rückwärts suchen</translation>
    </message>
    <message>
        <source>Search all conversations</source>
        <translation>Alle Gespräche durchsuchen</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>Write the answer again</source>
        <translation>Antwort neu schreiben</translation>
    </message>
    <message>
        <source>Settings of this chat</source>
        <translation>Einstellungen dieses Gesprächs</translation>
    </message>
    <message>
        <source>Models…</source>
        <translation>Modelle…</translation>
    </message>
    <message>
        <source>List of conversations</source>
        <translation>Liste der Gespräche</translation>
    </message>
    <message>
        <source>Tree</source>
        <translation>Baum</translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>Schritte</translation>
    </message>
    <message>
        <source>Equilibrium</source>
        <translation>Gleichgewicht</translation>
    </message>
    <message>
        <source>Compare two modes…</source>
        <translation>Zwei Arten vergleichen…</translation>
    </message>
    <message>
        <source>Open a trace…</source>
        <translation>Aufzeichnung öffnen…</translation>
    </message>
    <message>
        <source>Larger</source>
        <translation>Größer</translation>
    </message>
    <message>
        <source>Smaller</source>
        <translation>Kleiner</translation>
    </message>
    <message>
        <source>Normal size</source>
        <translation>Normale Größe</translation>
    </message>
    <message>
        <source>Light or dark</source>
        <translation>Hell oder dunkel</translation>
    </message>
    <message>
        <source>Find a command…</source>
        <translation>Befehl suchen…</translation>
    </message>
    <message>
        <source>Settings…</source>
        <translation>Einstellungen…</translation>
    </message>
    <message>
        <source>First steps…</source>
        <translation>Erste Schritte…</translation>
    </message>
    <message>
        <source>Diagnostics…</source>
        <translation>Diagnose…</translation>
    </message>
    <message>
        <source>About Medusa Chat</source>
        <translation>Über Medusa Chat</translation>
    </message>
    <message>
        <source>Close the window</source>
        <translation>Fenster schließen</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>Beenden</translation>
    </message>
</context>
</TS>
