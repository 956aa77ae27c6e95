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
    <name>AnswerMessage</name>
    <message>
        <source>Only answers of the chat can be gone on with.</source>
        <translation>Nur Antworten des Gesprächs lassen sich fortsetzen.</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>No text.</source>
        <translation>Kein Text.</translation>
    </message>
    <message>
        <source>No answer.</source>
        <translation>Keine Antwort.</translation>
    </message>
    <message>
        <source>Go on with this answer</source>
        <translation>Diese Antwort fortsetzen</translation>
    </message>
    <message>
        <source>Copy the answer</source>
        <translation>Antwort kopieren</translation>
    </message>
    <message>
        <source>Show this step (Ctrl+click, Enter)</source>
        <translation>Diesen Schritt zeigen (Strg+Klick, Eingabe)</translation>
    </message>
    <message>
        <source>Reroll from here</source>
        <translation>Ab hier neu auslosen</translation>
    </message>
    <message>
        <source>Keep what stands before this token and answer anew from here.</source>
        <translation>Was vor diesem Token steht, bleibt; ab hier wird neu geantwortet.</translation>
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
    <name>Chat</name>
    <message>
        <source>Of the steps in which a source guessed, the share in which one of its tokens was accepted, in the last answer. Head k guesses the k-th token after the one decided; it counts only where all before it were right. A token that several guessed counts for each.</source>
        <translation>Anteil der Schritte, in denen eines der geratenen Token angenommen wurde, an denen, in denen diese Quelle geraten hat; in der letzten Antwort. Kopf k rät das k-te Token nach dem entschiedenen; er zählt nur, wo alle davor richtig waren. Ein Token, das mehrere geraten haben, zählt für jede Quelle.</translation>
    </message>
    <message>
        <source>From here on the text is plain: there is too much of it to format.</source>
        <translation>Ab hier ist der Text unformatiert: Für Formate ist er zu lang.</translation>
    </message>
    <message>
        <source>{0} · ≈ {1:,} tokens</source>
        <translation>{0} · ≈ {1:,} Token</translation>
    </message>
    <message>
        <source>The answer ends here because the model&apos;s context is full. Continue goes on with it; the oldest messages are then left out, unless you chose otherwise under Context.</source>
        <translation>Die Antwort endet hier, weil der Kontext des Modells voll ist. „Fortsetzen“ führt sie weiter; dann fallen die ältesten Nachrichten weg, wenn Sie unter Kontext nichts anderes gewählt haben.</translation>
    </message>
    <message>
        <source>It is tiny: expect simple stories and small talk rather than facts.</source>
        <translation>Es ist winzig: Erwarten Sie einfache Geschichten und Plauderei, keine Fakten.</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>A language model normally writes one token per step. Here small extra heads guess the next few tokens, the model checks all guesses in a single step and keeps those that it would have written itself. Text that was guessed right is tinted and underlined in the colour of its head; the strip at the bottom counts. The words are the model&apos;s either way — only faster.</source>
        <translation>Ein Sprachmodell schreibt sonst ein Token je Schritt. Hier raten kleine Zusatzköpfe die nächsten Token voraus; das Modell prüft alle in einem einzigen Schritt und behält, was es selbst geschrieben hätte. Richtig geratener Text ist in der Farbe seines Kopfes getönt und unterstrichen; die Leiste unten zählt mit. Die Worte sind so oder so die des Modells – nur kommen sie schneller.</translation>
    </message>
    <message>
        <source>Keep what the panels show of the last 20,000 steps: 12 to 31 MB by the size of the trees. With the built-in model that costs two to five hundredths of the speed, with a large one nothing to speak of.</source>
        <translation>Behält, was die Ansichten von den letzten 20.000 Schritten zeigen: je nach Größe der Bäume 12 bis 31 MB. Beim eingebauten Modell kostet das zwei bis fünf Hundertstel des Tempos, bei einem großen kaum etwas.</translation>
    </message>
    <message>
        <source>could not be loaded</source>
        <translation>konnte nicht geladen werden</translation>
    </message>
    <message>
        <source>asleep: wakes with the next message</source>
        <translation>ruht: wacht mit der nächsten Nachricht auf</translation>
    </message>
    <message>
        <source>{0} Medusa heads</source>
        <translation>{0} Medusa-Köpfe</translation>
    </message>
    <message>
        <source>no heads</source>
        <translation>keine Köpfe</translation>
    </message>
    <message>
        <source> (the card can&apos;t be used)</source>
        <translation> (die Karte ist nicht nutzbar)</translation>
    </message>
    <message>
        <source>{0} parameters</source>
        <translation>{0} Parameter</translation>
    </message>
    <message>
        <source>What followed stays; you can go back to it with ‹ ›.</source>
        <translation>Was darauf folgte, bleibt; mit ‹ › kommen Sie dorthin zurück.</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Quote in the next message</source>
        <translation>In der nächsten Nachricht zitieren</translation>
    </message>
    <message>
        <source>Open this link?</source>
        <translation>Diesen Link öffnen?</translation>
    </message>
    <message>
        <source>Open this address in your browser?</source>
        <translation>Diese Adresse im Browser öffnen?</translation>
    </message>
    <message>
        <source>{0}
… and {1:,} more characters</source>
        <translation>{0}
… und {1:,} weitere Zeichen</translation>
    </message>
    <message>
        <source>less than a second</source>
        <translation>weniger als eine Sekunde</translation>
    </message>
    <message>
        <source>{0} min {1} s</source>
        <translation>{0} min {1} s</translation>
    </message>
</context>
<context>
    <name>ChatController</name>
    <message>
        <source>Thinking …</source>
        <translation>Denkt nach …</translation>
    </message>
    <message>
        <source>Waiting for the model …</source>
        <translation>Wartet auf das Modell …</translation>
    </message>
    <message>
        <source> · Esc stops</source>
        <translation> · Esc hält an</translation>
    </message>
    <message>
        <source>The engine has stopped: restart Medusa Chat</source>
        <translation>Das Rechenwerk steht still: Medusa Chat neu starten</translation>
    </message>
    <message>
        <source>The model could not be loaded.</source>
        <translation>Das Modell konnte nicht geladen werden.</translation>
    </message>
    <message>
        <source>The model is asleep; it wakes with your next message.</source>
        <translation>Das Modell ruht; es wacht mit Ihrer nächsten Nachricht auf.</translation>
    </message>
    <message>
        <source>{0} is ready.{1}</source>
        <translation>{0} ist bereit.{1}</translation>
    </message>
    <message>
        <source>The model is being loaded; you can write already.</source>
        <translation>Das Modell wird geladen; Sie können schon schreiben.</translation>
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
    <name>CodeHeader</name>
    <message>
        <source>Copy this code</source>
        <translation>Diesen Code kopieren</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
</context>
<context>
    <name>CompareDialog</name>
    <message>
        <source>Compare</source>
        <translation>Vergleichen</translation>
    </message>
    <message>
        <source>Start both</source>
        <translation>Beide starten</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Prompt for both</source>
        <translation>Frage an beide</translation>
    </message>
    <message>
        <source>One prompt for both sides</source>
        <translation>Eine Frage an beide Seiten</translation>
    </message>
    <message>
        <source>Verdict</source>
        <translation>Ergebnis</translation>
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
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>Stop the answer (Esc)</source>
        <translation>Antwort anhalten (Esc)</translation>
    </message>
    <message>
        <source>Send (Enter)</source>
        <translation>Senden (Eingabe)</translation>
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
        <source>Thinks as is usual for it</source>
        <translation>Denkt nach, wie es üblich ist</translation>
    </message>
    <message>
        <source>Thinks before it answers</source>
        <translation>Denkt nach, bevor es antwortet</translation>
    </message>
    <message>
        <source>Answers at once</source>
        <translation>Antwortet sofort</translation>
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
        <source>Thinking before an answer</source>
        <translation>Nachdenken vor der Antwort</translation>
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
        <source>This model can think before it answers: slower, and better at hard questions.</source>
        <translation>Dieses Modell kann nachdenken, bevor es antwortet: langsamer, und besser bei schwierigen Fragen.</translation>
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
    <name>ConversationFiles</name>
    <message>
        <source>Import …</source>
        <translation>Importieren …</translation>
    </message>
    <message>
        <source>Export all …</source>
        <translation>Alle exportieren …</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
    <message>
        <source>1 conversation written to {0}.</source>
        <translation>1 Gespräch nach {0} geschrieben.</translation>
    </message>
    <message>
        <source>{0} conversations written to {1}.</source>
        <translation>{0} Gespräche nach {1} geschrieben.</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>Importieren</translation>
    </message>
    <message>
        <source>Reading {0} …</source>
        <translation>{0} wird gelesen …</translation>
    </message>
    <message>
        <source>, {0} were here already</source>
        <translation>, {0} waren schon hier</translation>
    </message>
    <message>
        <source>{0} imported{1}.</source>
        <translation>{0} importiert{1}.</translation>
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
    <name>ConversationView</name>
    <message>
        <source>Conversation</source>
        <translation>Gespräch</translation>
    </message>
    <message>
        <source>Go to the end</source>
        <translation>Ans Ende gehen</translation>
    </message>
</context>
<context>
    <name>CopyButton</name>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
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
        <source>Weight format</source>
        <translation>Format der Gewichte</translation>
    </message>
    <message>
        <source>Keep token vectors in RAM</source>
        <translation>Tokenvektoren im RAM halten</translation>
    </message>
    <message>
        <source>A step reads only a few of them; this frees memory on the card.</source>
        <translation>Ein Schritt liest nur wenige davon; das macht Speicher auf der Karte frei.</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>Wählen Sie ein Modell</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>{0:,} tokens</source>
        <translation>{0:,} Token</translation>
    </message>
    <message>
        <source>Best for this computer{0}</source>
        <translation>Am besten für diesen Computer{0}</translation>
    </message>
    <message>
        <source>Reading sizes …</source>
        <translation>Größen werden gelesen …</translation>
    </message>
    <message>
        <source>, {0} in RAM</source>
        <translation>, {0} im RAM</translation>
    </message>
    <message>
        <source>Fits if context ≤ {0:,}</source>
        <translation>Passt, wenn der Kontext ≤ {0:,} ist</translation>
    </message>
    <message>
        <source>On a card its weights are made anew as nf4, which loses a little more: 2 % more bits per byte than in the file, measured on the demo model.</source>
        <translation>Auf einer Karte werden seine Gewichte neu als nf4 gebildet, was noch etwas verliert: 2 % mehr Bits je Byte als in der Datei, gemessen am Demo-Modell.</translation>
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
        <source>Automatic ({0})</source>
        <translation>Automatisch ({0})</translation>
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
    <message>
        <source> · gated</source>
        <translation> · auf Antrag</translation>
    </message>
    <message>
        <source>{0} Medusa heads</source>
        <translation>{0} Medusa-Köpfe</translation>
    </message>
    <message>
        <source>The heads are a pickle, which is converted once.</source>
        <translation>Die Köpfe sind eine Pickle-Datei, die einmal umgewandelt wird.</translation>
    </message>
    <message>
        <source>{0} Medusa heads for models {1:,} wide. Once they are here, they can be chosen with such a model under Installed.
{2}</source>
        <translation>{0} Medusa-Köpfe für Modelle der Breite {1:,}. Sind sie einmal hier, lassen sie sich unter Installiert zu einem solchen Modell wählen.
{2}</translation>
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
        <source>What shall we talk about?</source>
        <translation>Worüber sprechen wir?</translation>
    </message>
    <message>
        <source>See which larger models fit this computer …</source>
        <translation>Größere Modelle ansehen, die auf diesen Computer passen …</translation>
    </message>
    <message>
        <source>The model is being loaded.</source>
        <translation>Das Modell wird geladen.</translation>
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
    <name>EquilibriumPanel</name>
    <message>
        <source>Verify the conversation</source>
        <translation>Gespräch prüfen</translation>
    </message>
    <message>
        <source>Verify this text</source>
        <translation>Diesen Text prüfen</translation>
    </message>
    <message>
        <source>Next difference</source>
        <translation>Nächster Unterschied</translation>
    </message>
    <message>
        <source>There is no conversation yet.</source>
        <translation>Es gibt noch kein Gespräch.</translation>
    </message>
    <message>
        <source>Ask something, or paste a text.</source>
        <translation>Fragen Sie etwas, oder fügen Sie einen Text ein.</translation>
    </message>
    <message>
        <source>{0} The conversation has gone on since.</source>
        <translation>{0} Das Gespräch ist seitdem weitergegangen.</translation>
    </message>
    <message>
        <source>Verifying …</source>
        <translation>Wird geprüft …</translation>
    </message>
    <message>
        <source>… or any text of yours; Enter verifies it, Shift+Enter starts a new line</source>
        <translation>… oder ein eigener Text; Eingabe prüft ihn, Umschalt+Eingabe beginnt eine neue Zeile</translation>
    </message>
    <message>
        <source>Text to verify</source>
        <translation>Text, der geprüft wird</translation>
    </message>
</context>
<context>
    <name>EquilibriumTable</name>
    <message>
        <source>Inputs and outputs</source>
        <translation>Eingaben und Ausgaben</translation>
    </message>
    <message>
        <source>The model gives “{0}” {1} here.</source>
        <translation>Das Modell gibt „{0}“ hier {1}.</translation>
    </message>
    <message>
        <source>Token {0}</source>
        <translation>Token {0}</translation>
    </message>
</context>
<context>
    <name>ErrorBoard</name>
    <message>
        <source>Errors</source>
        <translation>Fehler</translation>
    </message>
</context>
<context>
    <name>ErrorCard</name>
    <message>
        <source>Error: {0} {1}</source>
        <translation>Fehler: {0} {1}</translation>
    </message>
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
    <name>FigureRow</name>
    <message>
        <source>Copy the answer as Markdown</source>
        <translation>Antwort als Markdown kopieren</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>Neu antworten</translation>
    </message>
    <message>
        <source>Answer again (Ctrl+R). The rule Sample takes a new seed; Greedy gives the same text with the drafter that is chosen now.</source>
        <translation>Noch einmal antworten (Strg+R). Die Regel Sample nimmt einen neuen Startwert; Greedy ergibt denselben Text, vorausgeraten wie jetzt gewählt.</translation>
    </message>
    <message>
        <source>Continue</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Go on with this answer</source>
        <translation>Diese Antwort fortsetzen</translation>
    </message>
    <message>
        <source>Branch</source>
        <translation>Abzweigen</translation>
    </message>
    <message>
        <source>Go on from here; what followed stays, and ‹ › leads back to it</source>
        <translation>Von hier weitermachen; was darauf folgte, bleibt, und ‹ › führt dorthin zurück</translation>
    </message>
    <message>
        <source>answer</source>
        <translation>Antwort</translation>
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
    <name>HeadBars</name>
    <message>
        <source>Acceptance by source</source>
        <translation>Angenommen, nach Quelle</translation>
    </message>
    <message>
        <source>no heads</source>
        <translation>keine Köpfe</translation>
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
    <message>
        <source>Model: {0}</source>
        <translation>Modell: {0}</translation>
    </message>
    <message>
        <source>{0}. Choose another model (Ctrl+Shift+M manages them).</source>
        <translation>{0}. Anderes Modell wählen (Strg+Umschalt+M verwaltet sie).</translation>
    </message>
</context>
<context>
    <name>History</name>
    <message>
        <source>Restore</source>
        <translation>Wiederherstellen</translation>
    </message>
    <message>
        <source>Delete for good …</source>
        <translation>Endgültig löschen …</translation>
    </message>
    <message>
        <source>Rename …</source>
        <translation>Umbenennen …</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>Loslösen</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>Anheften</translation>
    </message>
    <message>
        <source>Export …</source>
        <translation>Exportieren …</translation>
    </message>
    <message>
        <source>Move to trash	Del</source>
        <translation>In den Papierkorb	Entf</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Title</source>
        <translation>Titel</translation>
    </message>
    <message>
        <source>Move to folder</source>
        <translation>In einen Ordner</translation>
    </message>
    <message>
        <source>New folder …</source>
        <translation>Neuer Ordner …</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>Kein Ordner</translation>
    </message>
    <message>
        <source>New folder</source>
        <translation>Neuer Ordner</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>everything in the trash</source>
        <translation>alles im Papierkorb</translation>
    </message>
    <message>
        <source> Damaged copies of the history, which may hold it, go too ({0}).</source>
        <translation> Beschädigte Kopien des Verlaufs, in denen es noch stehen kann, werden auch gelöscht ({0}).</translation>
    </message>
    <message>
        <source>Delete {0} for good?</source>
        <translation>{0} endgültig löschen?</translation>
    </message>
    <message>
        <source>It can&apos;t be brought back.</source>
        <translation>Das lässt sich nicht rückgängig machen.</translation>
    </message>
    <message>
        <source>{0} conversations</source>
        <translation>{0} Gespräche</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>Web page (*.html)</source>
        <translation>Webseite (*.html)</translation>
    </message>
    <message>
        <source>Everything, to be imported again (*.json)</source>
        <translation>Alles, zum Wiedereinlesen (*.json)</translation>
    </message>
    <message>
        <source>Conversations (*.json *.zip);;All files (*)</source>
        <translation>Gespräche (*.json *.zip);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>January</source>
        <translation>Januar</translation>
    </message>
    <message>
        <source>February</source>
        <translation>Februar</translation>
    </message>
    <message>
        <source>March</source>
        <translation>März</translation>
    </message>
    <message>
        <source>April</source>
        <translation>April</translation>
    </message>
    <message>
        <source>May</source>
        <translation>Mai</translation>
    </message>
    <message>
        <source>June</source>
        <translation>Juni</translation>
    </message>
    <message>
        <source>July</source>
        <translation>Juli</translation>
    </message>
    <message>
        <source>August</source>
        <translation>August</translation>
    </message>
    <message>
        <source>September</source>
        <translation>September</translation>
    </message>
    <message>
        <source>October</source>
        <translation>Oktober</translation>
    </message>
    <message>
        <source>November</source>
        <translation>November</translation>
    </message>
    <message>
        <source>December</source>
        <translation>Dezember</translation>
    </message>
    <message>
        <source>Pinned</source>
        <translation>Angeheftet</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>Heute</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>Gestern</translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation>Letzte 7 Tage</translation>
    </message>
    <message>
        <source>Last 30 days</source>
        <translation>Letzte 30 Tage</translation>
    </message>
    <message>
        <source>What you write and receive stays in this window, and is saved once that is possible.</source>
        <translation>Was Sie schreiben und erhalten, bleibt in diesem Fenster und wird gesichert, sobald das möglich ist.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be written: {1}.</source>
        <translation>{0} lässt sich nicht schreiben: {1}.</translation>
    </message>
    <message>
        <source>Choose another folder, or make space.</source>
        <translation>Wählen Sie einen anderen Ordner, oder schaffen Sie Platz.</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neues Gespräch</translation>
    </message>
</context>
<context>
    <name>HistoryKeeper</name>
    <message>
        <source>Nothing was found for “{0}”.</source>
        <translation>Zu „{0}“ wurde nichts gefunden.</translation>
    </message>
    <message>
        <source>The trash is empty.</source>
        <translation>Der Papierkorb ist leer.</translation>
    </message>
    <message>
        <source>Your conversations will be listed here.</source>
        <translation>Hier stehen künftig Ihre Gespräche.</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>Unterhaltung</translation>
    </message>
    <message>
        <source>All is saved again.</source>
        <translation>Alles ist wieder gesichert.</translation>
    </message>
</context>
<context>
    <name>Insight</name>
    <message>
        <source>Nothing verified yet.</source>
        <translation>Noch nichts geprüft.</translation>
    </message>
    <message>
        <source>One token: the model goes on with “{0}”.</source>
        <translation>Ein Token: Das Modell fährt fort mit „{0}“.</translation>
    </message>
    <message>
        <source>{0:,} of the {1:,} tokens of answers are what the model puts there, all computed in one pass; questions and the chat format&apos;s own tokens (·) aren&apos;t counted.</source>
        <translation>{0:,} der {1:,} Tokens von Antworten sind, was das Modell dorthin setzt, alle in einem Durchgang berechnet; Fragen und die Tokens des Chatformats (·) zählen nicht.</translation>
    </message>
    <message>
        <source>{0:,} of {1:,} outputs equal the next input, all computed in one pass.</source>
        <translation>{0:,} von {1:,} Ausgaben sind gleich der nächsten Eingabe, alle in einem Durchlauf berechnet.</translation>
    </message>
    <message>
        <source>{0} From your edit on, they part behind “{1}” (token {2:,}). There the model goes on with “{3}”, the bonus token (★): it is what the model writes behind all inputs up to there. In decoding, the inputs behind it would be dropped.</source>
        <translation>{0} Ab Ihrer Änderung trennen sie sich hinter „{1}“ (Token {2:,}). Dort fährt das Modell mit „{3}“ fort, dem Zusatztoken (★): Das schreibt das Modell nach allen Eingaben bis dahin. Beim Antworten würden die Eingaben dahinter verworfen.</translation>
    </message>
    <message>
        <source>Both sides run on one engine, a step of one and a step of the other in turns. Each clock counts only its own side&apos;s steps, and each side has half of the context.</source>
        <translation>Beide Seiten rechnen abwechselnd, ein Schritt der einen, dann einer der anderen. Jede Uhr zählt nur die Schritte ihrer Seite, und jede Seite hat den halben Kontext.</translation>
    </message>
    <message>
        <source>Different rules, so the texts may differ.{0}</source>
        <translation>Verschiedene Regeln, also dürfen sich die Texte unterscheiden.{0}</translation>
    </message>
    <message>
        <source>Under this rule guesses change the text, so the two may differ.{0}</source>
        <translation>Bei dieser Regel verändert das Vorausraten den Text, also dürfen sich beide unterscheiden.{0}</translation>
    </message>
    <message>
        <source>✓ The same {0:,} tokens, as it must be.{1}</source>
        <translation>✓ Dieselben {0:,} Token, wie es sein muss.{1}</translation>
    </message>
    <message>
        <source>The same {0:,} tokens, as far as both go.{1}</source>
        <translation>Dieselben {0:,} Token, so weit beide reichen.{1}</translation>
    </message>
    <message>
        <source>The texts part after {0:,} tokens. On devices that round differently by the number of rows, that happens where two scores are as good as equal.{1}</source>
        <translation>Die Texte trennen sich nach {0:,} Token. Auf Geräten, die je nach Zahl der Zeilen anders runden, kommt das vor, wo zwei Werte so gut wie gleich sind.{1}</translation>
    </message>
    <message>
        <source> The left side decoded {0:.2f}× faster.</source>
        <translation> Die linke Seite war {0:.2f}× so schnell.</translation>
    </message>
    <message>
        <source> The right side decoded {0:.2f}× faster.</source>
        <translation> Die rechte Seite war {0:.2f}× so schnell.</translation>
    </message>
    <message>
        <source>The model reads all inputs at once and says behind each what it would write next. Where that is the next input everywhere, the text is an equilibrium: the model writes it itself. Double-click an input (or press F2) to change it, and see where the outputs part. ␣ is a space, ⏎ a line&apos;s end; most words begin with their space.</source>
        <translation>Das Modell liest alle Eingaben auf einmal und sagt hinter jeder, was es als Nächstes schriebe. Ist das überall die nächste Eingabe, dann ist der Text im Gleichgewicht: Das Modell schreibt ihn selbst. Ein Doppelklick (oder F2) ändert eine Eingabe; dann ist zu sehen, wo sich die Ausgaben trennen. ␣ ist ein Leerzeichen, ⏎ ein Zeilenende; die meisten Wörter beginnen mit ihrem Leerzeichen.</translation>
    </message>
    <message>
        <source>Input</source>
        <translation>Eingabe</translation>
    </message>
    <message>
        <source>Output</source>
        <translation>Ausgabe</translation>
    </message>
    <message>
        <source>Equal to the next input?</source>
        <translation>Gleich der nächsten Eingabe?</translation>
    </message>
    <message>
        <source>The step of this token is not recorded, or no longer.</source>
        <translation>Der Schritt dieses Tokens ist nicht aufgezeichnet, oder nicht mehr.</translation>
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
        <source>Saved as {0}.</source>
        <translation>Gesichert als {0}.</translation>
    </message>
    <message>
        <source>decided before</source>
        <translation>vorher entschieden</translation>
    </message>
    <message>
        <source>accepted</source>
        <translation>angenommen</translation>
    </message>
    <message>
        <source>the best guess where the model chose otherwise</source>
        <translation>am besten geraten, wo das Modell anders wählte</translation>
    </message>
    <message>
        <source>not what the model chose</source>
        <translation>nicht das, was das Modell wählte</translation>
    </message>
    <message>
        <source>not reached</source>
        <translation>nicht erreicht</translation>
    </message>
    <message>
        <source>chosen by the model</source>
        <translation>vom Modell gewählt</translation>
    </message>
    <message>
        <source>planned</source>
        <translation>geplant</translation>
    </message>
    <message>
        <source>last token</source>
        <translation>letztes Token</translation>
    </message>
    <message>
        <source>guess {0}</source>
        <translation>Wahl {0}</translation>
    </message>
    <message>
        <source>“{0}” is no name of a picture.</source>
        <translation>„{0}“ ist kein Name für ein Bild.</translation>
    </message>
    <message>
        <source>End it with .svg or .png.</source>
        <translation>Er muss auf .svg oder .png enden.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be written: {1}.</source>
        <translation>{0} lässt sich nicht schreiben: {1}.</translation>
    </message>
    <message>
        <source>Choose another folder, or make space.</source>
        <translation>Wählen Sie einen anderen Ordner, oder schaffen Sie Platz.</translation>
    </message>
    <message>
        <source>Token tree of one step</source>
        <translation>Tokenbaum eines Schrittes</translation>
    </message>
    <message>
        <source>{0}, {1} of it besides the four parts</source>
        <translation>{0}, davon {1} außerhalb der vier Teile</translation>
    </message>
    <message>
        <source>τ {0:.2f} tokens/step over {1:,} steps; a step takes {2}.</source>
        <translation>τ {0:.2f} Token/Schritt über {1:,} Schritte; ein Schritt dauert {2}.</translation>
    </message>
    <message>
        <source>{0:.2f}× plain decoding, whose steps take {1}.</source>
        <translation>{0:.2f}× so schnell wie ohne Vorausraten, wo ein Schritt {1} dauert.</translation>
    </message>
    <message>
        <source>Cache: {0:,} of {1:,} tokens, {2:,.1f} of {3:,.1f} MiB. Weights and heads: {4:,.0f} MiB.</source>
        <translation>Zwischenspeicher: {0:,} von {1:,} Token, {2:,.1f} von {3:,.1f} MiB. Gewichte und Köpfe: {4:,.0f} MiB.</translation>
    </message>
    <message>
        <source>step {0:,}</source>
        <translation>Schritt {0:,}</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>nicht bekannt</translation>
    </message>
    <message>
        <source>{0}: {1}, {2} of them accepted</source>
        <translation>{0}: {1}, davon {2} angenommen</translation>
    </message>
    <message>
        <source>draft</source>
        <translation>raten</translation>
    </message>
    <message>
        <source>verify</source>
        <translation>prüfen</translation>
    </message>
    <message>
        <source>accept</source>
        <translation>wählen</translation>
    </message>
    <message>
        <source>commit</source>
        <translation>halten</translation>
    </message>
    <message>
        <source>Tokens that each step gave: the accepted ones on the token that the model adds itself. Plain decoding gives 1. The mean over all steps is τ.</source>
        <translation>Token, die jeder Schritt ergab: die angenommenen über dem, das das Modell selbst hinzufügt. Ohne Vorausraten ist es 1. Der Mittelwert über alle Schritte ist τ.</translation>
    </message>
    <message>
        <source>Where each step&apos;s time went, on top of each other: drafting, verifying all guesses in one pass of the model, accepting, and keeping the accepted rows. In the title: the means.</source>
        <translation>Wohin die Zeit jedes Schrittes ging, übereinander: Raten, Prüfen aller geratenen Token in einem Durchlauf des Modells, Annehmen und Behalten der angenommenen Zeilen. Im Titel: die Mittelwerte.</translation>
    </message>
    <message>
        <source>Tokens per second, averaged over the neighbouring steps. The dashed line is plain decoding on this machine, measured after the model was loaded.</source>
        <translation>Token je Sekunde, gemittelt über benachbarte Schritte. Die gestrichelte Linie ist das Tempo ohne Vorausraten auf diesem Rechner, gemessen nach dem Laden des Modells.</translation>
    </message>
    <message>
        <source>Keys and values of the conversation so far, which every step reads. The dashed line is the room that is set aside for them, full when the context is. The rest of the memory does not change: the weights of the model and of its heads.</source>
        <translation>Schlüssel und Werte des bisherigen Gesprächs, die jeder Schritt liest. Die gestrichelte Linie ist der Platz dafür; er ist voll, wenn der Kontext es ist. Der übrige Speicher bleibt gleich: die Gewichte des Modells und seiner Köpfe.</translation>
    </message>
    <message>
        <source>T(n): time of one pass that verifies n rows, measured on this machine. The dot is what this answer&apos;s trees have on average. Medusa gains where the curve is flat.</source>
        <translation>T(n): Zeit eines Durchlaufs, der n Zeilen prüft, auf diesem Rechner gemessen. Der Punkt zeigt, wie viele die Bäume dieser Antwort im Mittel haben. Medusa gewinnt, wo die Kurve flach ist.</translation>
    </message>
    <message>
        <source>τ: tokens from decode steps ÷ decode steps. × plain: τ × time of a step of plain decoding ÷ mean time of a step. Cache: keys and values of the conversation so far, and the room there is.</source>
        <translation>τ: Token aus Schritten ÷ Schritte. × einfach: τ × Zeit eines Schrittes ohne Vorausraten ÷ mittlere Zeit eines Schrittes. Zwischenspeicher: Schlüssel und Werte des bisherigen Gesprächs und der Platz dafür.</translation>
    </message>
    <message>
        <source>lead over the next best</source>
        <translation>Vorsprung vor dem nächstbesten</translation>
    </message>
    <message>
        <source>chance after temperature and filters</source>
        <translation>Wahrscheinlichkeit nach Temperatur und Filtern</translation>
    </message>
    <message>
        <source>noise drawn at this place</source>
        <translation>Hier ausgelostes Rauschen</translation>
    </message>
    <message>
        <source>entropy (nats)</source>
        <translation>Entropie (Nat)</translation>
    </message>
    <message>
        <source>needed to be accepted</source>
        <translation>Zum Annehmen nötig</translation>
    </message>
    <message>
        <source>first</source>
        <translation>erste</translation>
    </message>
    <message>
        <source>second</source>
        <translation>zweite</translation>
    </message>
    <message>
        <source>third</source>
        <translation>dritte</translation>
    </message>
    <message>
        <source>{0}th</source>
        <translation>{0}.</translation>
    </message>
    <message>
        <source>Token</source>
        <translation>Token</translation>
    </message>
    <message>
        <source>given: it was decided before</source>
        <translation>gegeben: Es war vorher entschieden</translation>
    </message>
    <message>
        <source>its step left the buffer: newer ones needed the room</source>
        <translation>Sein Schritt ist nicht mehr im Puffer: Neuere brauchten den Platz</translation>
    </message>
    <message>
        <source>0 (reading the prompt)</source>
        <translation>0 (Lesen der Frage)</translation>
    </message>
    <message>
        <source>Id</source>
        <translation>Nummer</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>{0}, {1} of {2}</source>
        <translation>{0}, Stelle: {1} von {2}</translation>
    </message>
    <message>
        <source>Model&apos;s probability</source>
        <translation>Wahrscheinlichkeit laut Modell</translation>
    </message>
    <message>
        <source>Instead</source>
        <translation>Stattdessen</translation>
    </message>
    <message>
        <source>Rule</source>
        <translation>Regel</translation>
    </message>
    <message>
        <source>Time of the step</source>
        <translation>Zeit des Schrittes</translation>
    </message>
    <message>
        <source>the model itself</source>
        <translation>vom Modell selbst</translation>
    </message>
    <message>
        <source> (bonus token)</source>
        <translation> (Zusatztoken)</translation>
    </message>
    <message>
        <source>From</source>
        <translation>Von</translation>
    </message>
    <message>
        <source>{0} guess, {1}</source>
        <translation>{0} Wahl, {1}</translation>
    </message>
    <message>
        <source>Its guess</source>
        <translation>Geraten als</translation>
    </message>
    <message>
        <source>{0}, accepted</source>
        <translation>{0}, angenommen</translation>
    </message>
    <message>
        <source>Lead over the next best</source>
        <translation>Vorsprung vor dem nächstbesten</translation>
    </message>
    <message>
        <source>{0:.3g} times as likely</source>
        <translation>{0:.3g}-mal so wahrscheinlich</translation>
    </message>
    <message>
        <source>{0} Likelier ones are not allowed here.</source>
        <translation>{0} Wahrscheinlichere sind hier nicht erlaubt.</translation>
    </message>
    <message>
        <source>Traces (*.json)</source>
        <translation>Aufzeichnungen (*.json)</translation>
    </message>
    <message>
        <source>Pictures (*.svg *.png)</source>
        <translation>Bilder (*.svg *.png)</translation>
    </message>
    <message>
        <source>{0} has {1:,} steps; {2:,} can be shown.</source>
        <translation>{0} hat {1:,} Schritte; {2:,} können gezeigt werden.</translation>
    </message>
    <message>
        <source>Record a shorter answer.</source>
        <translation>Zeichnen Sie eine kürzere Antwort auf.</translation>
    </message>
    <message>
        <source>the prompt is read, one token</source>
        <translation>die Frage wird gelesen, ein Token</translation>
    </message>
    <message>
        <source>{0} accepted</source>
        <translation>{0} angenommen</translation>
    </message>
    <message>
        <source>1 of the model&apos;s own</source>
        <translation>1 vom Modell selbst</translation>
    </message>
    <message>
        <source>{0} token ({1})</source>
        <translation>{0} Token ({1})</translation>
    </message>
    <message>
        <source>{0} tokens ({1})</source>
        <translation>{0} Token ({1})</translation>
    </message>
    <message>
        <source>{0}: {1}, from {2}{3}</source>
        <translation>{0}: {1}, von {2}{3}</translation>
    </message>
    <message>
        <source>{0}; the model gave it {1}</source>
        <translation>{0}; das Modell gab ihm {1}</translation>
    </message>
    <message>
        <source>what the model chose itself</source>
        <translation>was das Modell selbst wählte</translation>
    </message>
    <message>
        <source>the best guess there, but not chosen</source>
        <translation>dort am besten geraten, aber nicht gewählt</translation>
    </message>
    <message>
        <source>not chosen</source>
        <translation>nicht gewählt</translation>
    </message>
    <message>
        <source>behind a wrong guess</source>
        <translation>hinter falsch Geratenem</translation>
    </message>
    <message>
        <source>chance that the drafter gave it; paler: less</source>
        <translation>Wahrscheinlichkeit nach dem, der riet; blasser: geringer</translation>
    </message>
    <message>
        <source>a row of the tree, for a guess</source>
        <translation>eine Zeile des Baumes, für ein geratenes Token</translation>
    </message>
    <message>
        <source>chance that it and all before it are right; paler: less</source>
        <translation>Wahrscheinlichkeit, dass es und alle davor richtig sind; blasser: geringer</translation>
    </message>
    <message>
        <source>From left to right: the last token, then guesses of what follows. One pass of the model checks all of them.</source>
        <translation>Von links nach rechts: das letzte Token, dann Geratenes, was folgen könnte. Ein Durchlauf des Modells prüft alles.</translation>
    </message>
    <message>
        <source>The guesses of the heads that pay most, by how often each has been right. More rows give more tokens in a step, but a step takes longer. The drafter Medusa heads uses this tree as it is, those that grow a tree for each step use as many rows.</source>
        <translation>Was die Köpfe raten und am meisten lohnt, danach, wie oft jeder richtig lag. Mehr Zeilen ergeben mehr Token in einem Schritt, aber er dauert länger. „Medusa-Köpfe“ nimmt diesen Baum, wie er ist; wo für jeden Schritt ein Baum wächst, hat er so viele Zeilen.</translation>
    </message>
    <message>
        <source>head {0} {1:.0%}</source>
        <translation>Kopf {0} {1:.0%}</translation>
    </message>
    <message>
        <source>near {0:g}</source>
        <translation>nahe {0:g}</translation>
    </message>
    <message>
        <source>at temperatures {0}</source>
        <translation>bei Temperaturen {0}</translation>
    </message>
    <message>
        <source>without chance, as Greedy</source>
        <translation>ohne Zufall, wie bei Greedy</translation>
    </message>
    <message>
        <source> and in {0:,} steps since</source>
        <translation> und in {0:,} Schritten seitdem</translation>
    </message>
    <message>
        <source>Right first guesses, {0}: {1} (where the heads were measured{2}).</source>
        <translation>Richtige erste Wahl, {0}: {1} (wo die Köpfe gemessen wurden{2}).</translation>
    </message>
    <message>
        <source>model chose {0}</source>
        <translation>Modell: {0}</translation>
    </message>
    <message>
        <source>model chose ({1:.0%}) {0}</source>
        <translation>Modell wählte ({1:.0%}) {0}</translation>
    </message>
    <message>
        <source>Node</source>
        <translation>Knoten</translation>
    </message>
    <message>
        <source>Depth</source>
        <translation>Tiefe</translation>
    </message>
    <message>
        <source>Guess</source>
        <translation>Wahl</translation>
    </message>
    <message>
        <source>Drafter gave</source>
        <translation>Laut Rater</translation>
    </message>
    <message>
        <source>Model gave</source>
        <translation>Laut Modell</translation>
    </message>
    <message>
        <source>Result</source>
        <translation>Ergebnis</translation>
    </message>
    <message>
        <source>After token</source>
        <translation>Nach Token</translation>
    </message>
    <message>
        <source>No step to show yet: ask something.</source>
        <translation>Noch kein Schritt zu zeigen: Fragen Sie etwas.</translation>
    </message>
    <message>
        <source>‹end of answer›</source>
        <translation>‹Ende der Antwort›</translation>
    </message>
    <message>
        <source>‹special {0}›</source>
        <translation>‹Sondertoken {0}›</translation>
    </message>
    <message>
        <source>given</source>
        <translation>gegeben</translation>
    </message>
    <message>
        <source> and </source>
        <translation> und </translation>
    </message>
    <message>
        <source>{0}, {1} ahead</source>
        <translation>{0}, {1} voraus</translation>
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
        <source> · quantized copies {0}</source>
        <translation> · quantisierte Kopien {0}</translation>
    </message>
    <message>
        <source>Nothing is downloaded yet: see Discover, or import a model.</source>
        <translation>Noch ist nichts heruntergeladen: siehe Entdecken, oder importieren Sie ein Modell.</translation>
    </message>
    <message>
        <source>{0}{1} · downloads go to {2}{3}</source>
        <translation>{0}{1} · Downloads liegen in {2}{3}</translation>
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
        <source>Verifying {0}: reading every byte …</source>
        <translation>{0} wird überprüft: Jedes Byte wird gelesen …</translation>
    </message>
    <message>
        <source>{0}: {1}. Download it again to mend it.</source>
        <translation>{0}: {1}. Ein neuer Download behebt das.</translation>
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
        <source>{0} is deleted: {1} are free again.</source>
        <translation>{0} ist gelöscht: {1} sind wieder frei.</translation>
    </message>
    <message>
        <source>{0} is off the list; its files stay.</source>
        <translation>{0} steht nicht mehr in der Liste; die Dateien bleiben.</translation>
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
    <message>
        <source>Where downloads go</source>
        <translation>Wohin Downloads kommen</translation>
    </message>
    <message>
        <source>The quantized copies are deleted: {0} are free.</source>
        <translation>Die quantisierten Kopien sind gelöscht: {0} sind frei.</translation>
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
    <message>
        <source>The heads of this pair are published as a pickle, a kind of file that can run code when it is opened. Medusa Chat looks through it first, refuses everything but plain tensors, and converts it once, in a process of its own.</source>
        <translation>Die Köpfe dieses Paares liegen als Pickle-Datei vor, einer Art von Datei, die beim Öffnen Code ausführen kann. Medusa Chat sieht sie vorher durch, weist alles außer reinen Tensoren ab und wandelt sie einmal um, in einem eigenen Prozess.</translation>
    </message>
    <message>
        <source>About {0} tokens/s here (an estimate). It has no heads: guesses come from the chat&apos;s own text.</source>
        <translation>Etwa {0} Tokens/s auf diesem Gerät (geschätzt). Es hat keine Köpfe: Geraten wird aus dem Text des Chats selbst.</translation>
    </message>
    <message>
        <source>About {0} tokens/s here with its heads, {1} without (an estimate).</source>
        <translation>Etwa {0} Tokens/s auf diesem Gerät mit seinen Köpfen, {1} ohne (geschätzt).</translation>
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
    <message>
        <source>Download and convert these heads?</source>
        <translation>Diese Köpfe herunterladen und umwandeln?</translation>
    </message>
    <message>
        <source>{0} is here: load it under Installed.</source>
        <translation>{0} ist da: Laden lässt es sich unter Installiert.</translation>
    </message>
</context>
<context>
    <name>ListModel</name>
    <message>
        <source>Heading: {0}</source>
        <translation>Überschrift: {0}</translation>
    </message>
    <message>
        <source>, is being answered</source>
        <translation>, wird beantwortet</translation>
    </message>
</context>
<context>
    <name>MemoryBar</name>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>other programs</source>
        <translation>andere Programme</translation>
    </message>
    <message>
        <source>runtime</source>
        <translation>Laufzeit</translation>
    </message>
    <message>
        <source>weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>heads</source>
        <translation>Köpfe</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV-Cache</translation>
    </message>
    <message>
        <source>scratch</source>
        <translation>Zwischenwerte</translation>
    </message>
    <message>
        <source>free</source>
        <translation>frei</translation>
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
    <name>PathView</name>
    <message>
        <source>{0} wrote this answer: load it to go on with its tokens.</source>
        <translation>Diese Antwort schrieb {0}: Laden Sie es, um mit ihren Token weiterzumachen.</translation>
    </message>
</context>
<context>
    <name>PlanBar</name>
    <message>
        <source>Rows of the tree</source>
        <translation>Zeilen des Baumes</translation>
    </message>
    <message>
        <source>How many tokens one step verifies, the root included</source>
        <translation>So viele Token prüft ein Schritt, die Wurzel eingeschlossen</translation>
    </message>
    <message>
        <source>τ is 1 (the model&apos;s own token) plus the chance of every node: the product of the accuracies of the ranks on its path. The speed is τ ÷ the time of such a step, measured on this machine.</source>
        <translation>τ ist 1 (das eigene Token des Modells) plus die Wahrscheinlichkeit jedes Knotens: das Produkt der Trefferquoten der Ränge auf seinem Weg. Das Tempo ist τ ÷ Zeit eines solchen Schrittes, auf diesem Rechner gemessen.</translation>
    </message>
    <message>
        <source>Rows</source>
        <translation>Zeilen</translation>
    </message>
    <message>
        <source>Use for the next answers</source>
        <translation>Für die nächsten Antworten nehmen</translation>
    </message>
    <message>
        <source>Else the engine chooses what is fastest on this machine</source>
        <translation>Sonst wird gewählt, was auf diesem Rechner am schnellsten ist</translation>
    </message>
    <message>
        <source>not measured yet</source>
        <translation>noch nicht gemessen</translation>
    </message>
    <message>
        <source>this model has no heads</source>
        <translation>dieses Modell hat keine Köpfe</translation>
    </message>
    <message>
        <source> · the engine&apos;s choice</source>
        <translation> · von selbst gewählt</translation>
    </message>
    <message>
        <source>{0} rows · expected {1:.2f} tokens/step · {2:,.0f} tokens/s · {3:.2f}× plain{4}</source>
        <translation>{0} Zeilen · erwartet {1:.2f} Token/Schritt · {2:,.0f} Token/s · {3:.2f}× einfach{4}</translation>
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
    <name>PromptActions</name>
    <message>
        <source>message</source>
        <translation>Nachricht</translation>
    </message>
    <message>
        <source>Copy the message</source>
        <translation>Nachricht kopieren</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
    <message>
        <source>Edit and send again; this version stays</source>
        <translation>Bearbeiten und neu senden; diese Version bleibt</translation>
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
    <name>PromptEditor</name>
    <message>
        <source>Edited message</source>
        <translation>Bearbeitete Nachricht</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>Senden</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
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
        <source>small built-in demo</source>
        <translation>kleines eingebautes Demomodell</translation>
    </message>
    <message>
        <source>this computer&apos;s memory</source>
        <translation>Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>Prozessor</translation>
    </message>
    <message>
        <source>Graphics card</source>
        <translation>Grafikkarte</translation>
    </message>
    <message>
        <source>This torch finds no CUDA device.</source>
        <translation>Dieses torch findet kein CUDA-Gerät.</translation>
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
        <source>Recommended</source>
        <translation>Empfohlen</translation>
    </message>
    <message>
        <source>As the makers of this model advise to sample from it.</source>
        <translation>Wie die Hersteller dieses Modells empfehlen, daraus zu ziehen.</translation>
    </message>
    <message>
        <source>head</source>
        <translation>Kopf</translation>
    </message>
    <message>
        <source>guessed by a Medusa head; head k guesses k tokens ahead</source>
        <translation>von einem Medusa-Kopf geraten; Kopf k rät k Token voraus</translation>
    </message>
    <message>
        <source>lookup</source>
        <translation>Textfund</translation>
    </message>
    <message>
        <source>found in the text so far</source>
        <translation>im bisherigen Text gefunden</translation>
    </message>
    <message>
        <source>phrases</source>
        <translation>Phrasen</translation>
    </message>
    <message>
        <source>what the model often says there</source>
        <translation>was das Modell dort oft sagt</translation>
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
    <name>Side</name>
    <message>
        <source>Drafter, {0}</source>
        <translation>Vorausraten, {0}</translation>
    </message>
    <message>
        <source>Rule, {0}</source>
        <translation>Regel, {0}</translation>
    </message>
    <message>
        <source>{0} rows</source>
        <translation>{0} Zeilen</translation>
    </message>
    <message>
        <source>Best tree</source>
        <translation>Bester Baum</translation>
    </message>
    <message>
        <source>Rows of the tree, {0}</source>
        <translation>Zeilen des Baumes, {0}</translation>
    </message>
    <message>
        <source>Tokens that one step verifies; plain decoding has no tree</source>
        <translation>Token, die ein Schritt prüft; ohne Vorausraten gibt es keinen Baum</translation>
    </message>
    <message>
        <source>Clock, {0}</source>
        <translation>Uhr, {0}</translation>
    </message>
    <message>
        <source>Answer, {0}</source>
        <translation>Antwort, {0}</translation>
    </message>
    <message>
        <source>Waiting for its turn …</source>
        <translation>Wartet, bis sie dran ist …</translation>
    </message>
    <message>
        <source>{0} · {1:,} tokens · {2:,.0f} tokens/s</source>
        <translation>{0} · {1:,} Token · {2:,.0f} Token/s</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message>
        <source>Search conversations</source>
        <translation>Gespräche durchsuchen</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neues Gespräch</translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation>Neues Gespräch (Strg+N)</translation>
    </message>
    <message>
        <source>Trash</source>
        <translation>Papierkorb</translation>
    </message>
    <message>
        <source>Show the trash</source>
        <translation>Papierkorb zeigen</translation>
    </message>
    <message>
        <source>More</source>
        <translation>Mehr</translation>
    </message>
    <message>
        <source>Import and export</source>
        <translation>Importieren und exportieren</translation>
    </message>
    <message>
        <source>Empty trash …</source>
        <translation>Papierkorb leeren …</translation>
    </message>
    <message>
        <source>Back to the conversations</source>
        <translation>Zurück zu den Gesprächen</translation>
    </message>
</context>
<context>
    <name>StepBars</name>
    <message>
        <source>Tokens per step</source>
        <translation>Token je Schritt</translation>
    </message>
    <message>
        <source>One bar for each decoding step, as high as the tokens it gave: grey those that the model chose itself, in colours the accepted ones by who guessed them.</source>
        <translation>Ein Balken je Schritt, so hoch wie die Zahl seiner Token: grau, was das Modell selbst wählte, farbig das Angenommene, je nachdem, wer es geraten hat.</translation>
    </message>
</context>
<context>
    <name>StepsPanel</name>
    <message>
        <source>Tokens per step</source>
        <translation>Token je Schritt</translation>
    </message>
    <message>
        <source>Step (µs)</source>
        <translation>Zeit (µs)</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>Token je Sekunde</translation>
    </message>
    <message>
        <source>Memory of the cache (MiB)</source>
        <translation>Zwischenspeicher (MiB)</translation>
    </message>
    <message>
        <source>Guesses accepted, by source</source>
        <translation>Angenommen, nach Quelle</translation>
    </message>
    <message>
        <source>A pass of n rows, T(n) (µs)</source>
        <translation>Durchlauf mit n Zeilen, T(n) (µs)</translation>
    </message>
    <message>
        <source>the model&apos;s own</source>
        <translation>vom Modell selbst</translation>
    </message>
    <message>
        <source>accepted</source>
        <translation>angenommen</translation>
    </message>
    <message>
        <source>nothing yet</source>
        <translation>noch nichts</translation>
    </message>
    <message>
        <source>{0} rows take {1:.0f} µs</source>
        <translation>{0} Zeilen dauern {1:.0f} µs</translation>
    </message>
    <message>
        <source>No decoding steps yet: ask something.</source>
        <translation>Noch keine Schritte: Fragen Sie etwas.</translation>
    </message>
    <message>
        <source>{0} Recorded with {1}, which isn&apos;t loaded: no comparison.</source>
        <translation>{0} Aufgezeichnet mit {1}, das nicht geladen ist: kein Vergleich.</translation>
    </message>
    <message>
        <source>no step is shown</source>
        <translation>kein Schritt wird gezeigt</translation>
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
    <message>
        <source>{0} {1}, {2:,} steps</source>
        <translation>{0} {1}, {2:,} Schritte</translation>
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
    <name>ThoughtFold</name>
    <message>
        <source>Thought</source>
        <translation>Gedacht</translation>
    </message>
    <message>
        <source>Thinking…</source>
        <translation>Denkt nach …</translation>
    </message>
    <message>
        <source>Thought for {0}</source>
        <translation>Nachgedacht: {0}</translation>
    </message>
    <message>
        <source>Show what the model thought; it isn&apos;t sent back to the model</source>
        <translation>Zeigen, was das Modell gedacht hat; es bekommt das nicht wieder zu lesen</translation>
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
    <name>TraceFiles</name>
    <message>
        <source>Open a trace</source>
        <translation>Aufzeichnung öffnen</translation>
    </message>
    <message>
        <source>There is no whole recording to save.</source>
        <translation>Es gibt keine ganze Aufzeichnung, die sich sichern ließe.</translation>
    </message>
    <message>
        <source>Save the trace</source>
        <translation>Aufzeichnung sichern</translation>
    </message>
    <message>
        <source>Ask something first, with recording on.</source>
        <translation>Fragen Sie erst etwas, während aufgezeichnet wird.</translation>
    </message>
    <message>
        <source>This answer broke off with an error; ask again.</source>
        <translation>Diese Antwort brach mit einem Fehler ab; fragen Sie noch einmal.</translation>
    </message>
    <message>
        <source>Wait for the end of the answer.</source>
        <translation>Warten Sie das Ende der Antwort ab.</translation>
    </message>
    <message>
        <source>Its first steps have left the buffer: newer answers needed the room.</source>
        <translation>Ihre ersten Schritte sind nicht mehr im Puffer: Neuere Antworten brauchten den Platz.</translation>
    </message>
    <message>
        <source>There is no tree to save.</source>
        <translation>Es gibt keinen Baum, der sich sichern ließe.</translation>
    </message>
    <message>
        <source>Ask something first.</source>
        <translation>Fragen Sie erst etwas.</translation>
    </message>
    <message>
        <source>Save the picture</source>
        <translation>Bild sichern</translation>
    </message>
</context>
<context>
    <name>Transport</name>
    <message>
        <source>Step back</source>
        <translation>Schritt zurück</translation>
    </message>
    <message>
        <source>Play</source>
        <translation>Abspielen</translation>
    </message>
    <message>
        <source>Step forward</source>
        <translation>Schritt vor</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>Schritt</translation>
    </message>
    <message>
        <source>The step that is shown; arrow keys move by one, Page keys by ten</source>
        <translation>Der gezeigte Schritt; Pfeiltasten gehen einen weiter, Bildtasten zehn</translation>
    </message>
    <message>
        <source>Follow live</source>
        <translation>Mitlaufen</translation>
    </message>
    <message>
        <source>Show the newest step while an answer is written</source>
        <translation>Während einer Antwort den neuesten Schritt zeigen</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>its steps left the buffer</source>
        <translation>die Schritte sind nicht mehr im Puffer</translation>
    </message>
    <message>
        <source>no steps yet</source>
        <translation>noch keine Schritte</translation>
    </message>
    <message>
        <source>step {0:,} of {1:,}: {2}</source>
        <translation>Schritt {0:,} von {1:,}: {2}</translation>
    </message>
</context>
<context>
    <name>TreeLegend</name>
    <message>
        <source>Legend</source>
        <translation>Legende</translation>
    </message>
</context>
<context>
    <name>TreePanel</name>
    <message>
        <source>Which tree</source>
        <translation>Welcher Baum</translation>
    </message>
    <message>
        <source>This step</source>
        <translation>Dieser Schritt</translation>
    </message>
    <message>
        <source>Planned tree</source>
        <translation>Geplanter Baum</translation>
    </message>
    <message>
        <source>Table</source>
        <translation>Tabelle</translation>
    </message>
    <message>
        <source>List the nodes instead of drawing them</source>
        <translation>Knoten auflisten, statt sie zu zeichnen</translation>
    </message>
    <message>
        <source>Save this answer&apos;s steps as JSON</source>
        <translation>Die Schritte dieser Antwort als JSON sichern</translation>
    </message>
    <message>
        <source>Draw smaller (−)</source>
        <translation>Kleiner zeichnen (−)</translation>
    </message>
    <message>
        <source>Draw larger (+)</source>
        <translation>Größer zeichnen (+)</translation>
    </message>
    <message>
        <source>Show the whole tree (0)</source>
        <translation>Den ganzen Baum zeigen (0)</translation>
    </message>
    <message>
        <source>Open …</source>
        <translation>Öffnen …</translation>
    </message>
    <message>
        <source>Open a recorded trace</source>
        <translation>Eine Aufzeichnung öffnen</translation>
    </message>
    <message>
        <source>Save trace …</source>
        <translation>Sichern …</translation>
    </message>
    <message>
        <source>Save picture …</source>
        <translation>Bild sichern …</translation>
    </message>
    <message>
        <source>Save this picture as SVG or PNG</source>
        <translation>Dieses Bild als SVG oder PNG sichern</translation>
    </message>
    <message>
        <source>An opened trace: {0} answered</source>
        <translation>Eine geöffnete Aufzeichnung: {0} hat geantwortet</translation>
    </message>
</context>
<context>
    <name>TreeTable</name>
    <message>
        <source>Nodes of the tree</source>
        <translation>Knoten des Baumes</translation>
    </message>
</context>
<context>
    <name>TreeView</name>
    <message>
        <source>Token tree</source>
        <translation>Tokenbaum</translation>
    </message>
</context>
<context>
    <name>UserMessage</name>
    <message>
        <source>You</source>
        <translation>Sie</translation>
    </message>
    <message>
        <source>Copy the message</source>
        <translation>Nachricht kopieren</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>Bearbeiten</translation>
    </message>
</context>
<context>
    <name>VersionRow</name>
    <message>
        <source>Previous version of this {0}</source>
        <translation>Vorige Version dieser {0}</translation>
    </message>
    <message>
        <source>Next version of this {0}</source>
        <translation>Nächste Version dieser {0}</translation>
    </message>
    <message>
        <source>Version {0} of {1} of this {2}</source>
        <translation>Version {0} von {1} dieser {2}</translation>
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
        <source>Attach files…</source>
        <translation>Dateien anhängen …</translation>
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
