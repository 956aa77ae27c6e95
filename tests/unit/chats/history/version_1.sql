-- A file as version 1 of the tables wrote it. Never changed.
CREATE TABLE folders (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL
) STRICT;
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    has_own_title INTEGER NOT NULL DEFAULT 0,
    folder INTEGER REFERENCES folders (number) ON DELETE SET NULL,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    created_s REAL NOT NULL,
    changed_s REAL NOT NULL,
    place REAL NOT NULL,
    trashed_s REAL,
    leaf INTEGER,
    num_messages INTEGER NOT NULL DEFAULT 0,
    settings TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX conversations_by_place ON conversations (place);
CREATE INDEX conversations_by_folder ON conversations (folder);
CREATE TABLE messages (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    parent INTEGER REFERENCES messages (number),
    role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    text TEXT NOT NULL,
    created_s REAL NOT NULL
) STRICT;
CREATE INDEX messages_by_conversation ON messages (conversation);
CREATE INDEX messages_by_parent ON messages (parent);
CREATE TABLE attachments (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    text TEXT NOT NULL,
    num_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX attachments_by_message ON attachments (message);
CREATE TABLE answers (
    message INTEGER PRIMARY KEY REFERENCES messages (number) ON DELETE CASCADE,
    model TEXT NOT NULL,
    model_key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('streaming', 'done', 'cut', 'failed')),
    settings TEXT NOT NULL,
    done TEXT
) STRICT;
CREATE INDEX answers_under_way ON answers (message) WHERE state = 'streaming';
CREATE TABLE steps (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES messages (number) ON DELETE CASCADE,
    packed BLOB NOT NULL
) STRICT;
CREATE INDEX steps_by_message ON steps (message);
CREATE TABLE traces (
    number INTEGER PRIMARY KEY,
    message INTEGER NOT NULL UNIQUE REFERENCES messages (number) ON DELETE CASCADE,
    num_bytes INTEGER NOT NULL,
    packed BLOB NOT NULL
) STRICT;
CREATE INDEX traces_by_size ON traces (num_bytes);
CREATE TABLE drafts (
    conversation_id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE message_words USING fts5 (
    words, tokenize = "unicode61 remove_diacritics 0", prefix = '1 2 3'
);
CREATE VIRTUAL TABLE title_words USING fts5 (
    words, tokenize = "unicode61 remove_diacritics 0", prefix = '1 2 3'
);
INSERT INTO folders (number, id, name) VALUES (1, '5b28555b9c9a43e3a32adedc05cb1d89', 'Kitchen');
INSERT INTO conversations (number, id, title, has_own_title, folder, is_pinned, created_s, changed_s, place, trashed_s, leaf, num_messages, settings) VALUES (1, 'tea', 'About tea', 0, 1, 0, 1700000001.0, 1700000010.0, 1700000010.0, NULL, 6, 6, '');
INSERT INTO conversations (number, id, title, has_own_title, folder, is_pinned, created_s, changed_s, place, trashed_s, leaf, num_messages, settings) VALUES (2, 'ships', 'Ships', 0, NULL, 0, 1700000011.0, 1700000014.0, 1700000014.0, NULL, 8, 2, '');
INSERT INTO messages (number, id, conversation, parent, role, text, created_s) VALUES (1, 'tea-0', 1, NULL, 'user', 'How long does green tea steep?', 5.0);
INSERT INTO messages (number, id, conversation, parent, role, text, created_s) VALUES (2, 'tea-1', 1, 1, 'assistant', 'Two minutes, not more.', 6.0);
INSERT INTO messages (number, id, conversation, parent, role, text, created_s) VALUES (3, 'tea-2', 1, 2, 'user', 'And black tea?', 5.0);
INSERT INTO messages (number, id, conversation, parent, role, text, created_s) VALUES (4, 'tea-3', 1, 3, 'assistant', 'Four minutes.', 6.0);
INSERT INTO messages (number, id, conversation, parent, role, text, created_s) VALUES (5, 'tea-4', 1, 2, 'user', 'And Jörg''s crème brûlée?', 5.0);
INSERT INTO messages (number, id, conversation, parent, role, text, created_s) VALUES (6, 'tea-5', 1, 5, 'assistant', 'That is no tea: 東京の天気は晴れです。', 6.0);
INSERT INTO messages (number, id, conversation, parent, role, text, created_s) VALUES (7, 'ships-0', 2, NULL, 'user', 'Name a ship.', 5.0);
INSERT INTO messages (number, id, conversation, parent, role, text, created_s) VALUES (8, 'ships-1', 2, 7, 'assistant', 'The lighthouse keeper''s boat.', 6.0);
INSERT INTO attachments (number, message, name, media_type, text, num_bytes) VALUES (1, 1, 'notes.txt', 'text/plain', 'kept notes', 10);
INSERT INTO attachments (number, message, name, media_type, text, num_bytes) VALUES (2, 3, 'notes.txt', 'text/plain', 'kept notes', 10);
INSERT INTO attachments (number, message, name, media_type, text, num_bytes) VALUES (3, 5, 'notes.txt', 'text/plain', 'kept notes', 10);
INSERT INTO attachments (number, message, name, media_type, text, num_bytes) VALUES (4, 7, 'notes.txt', 'text/plain', 'kept notes', 10);
INSERT INTO answers (message, model, model_key, state, settings, done) VALUES (2, 'Pebble', '/models/pebble', 'done', '{"drafter": "medusa", "rule": "greedy", "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [], "banned": [], "forbidden": [], "epsilon": 0.09, "delta": 0.3, "seed": 7, "max_new_tokens": 512, "stop": ["x"], "tree_rows": 0}', '{"session_id": "s", "request_id": "r", "token_ids": [1, 2, 3], "stop_reason": "eos", "num_prompt_tokens": 4, "num_given_tokens": 0, "num_cached_tokens": 1, "num_steps": 2, "accept_lengths": [2, 1], "time_to_first_token_s": 0.1, "prefill_s": 0.2, "decode_s": 0.3, "num_rested": 0, "plain_step_s": 0.004, "settings": {"drafter": "medusa", "rule": "greedy", "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [[3, -0.5]], "banned": [], "forbidden": [[1, 2]], "epsilon": 0.09, "delta": 0.3, "seed": 0, "max_new_tokens": 512, "stop": [], "tree_rows": 0}}');
INSERT INTO answers (message, model, model_key, state, settings, done) VALUES (4, 'Pebble', '/models/pebble', 'done', '{"drafter": "medusa", "rule": "greedy", "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [], "banned": [], "forbidden": [], "epsilon": 0.09, "delta": 0.3, "seed": 7, "max_new_tokens": 512, "stop": ["x"], "tree_rows": 0}', '{"session_id": "s", "request_id": "r", "token_ids": [1, 2, 3], "stop_reason": "eos", "num_prompt_tokens": 4, "num_given_tokens": 0, "num_cached_tokens": 1, "num_steps": 2, "accept_lengths": [2, 1], "time_to_first_token_s": 0.1, "prefill_s": 0.2, "decode_s": 0.3, "num_rested": 0, "plain_step_s": 0.004, "settings": {"drafter": "medusa", "rule": "greedy", "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [[3, -0.5]], "banned": [], "forbidden": [[1, 2]], "epsilon": 0.09, "delta": 0.3, "seed": 0, "max_new_tokens": 512, "stop": [], "tree_rows": 0}}');
INSERT INTO answers (message, model, model_key, state, settings, done) VALUES (6, 'Pebble', '/models/pebble', 'done', '{"drafter": "medusa", "rule": "greedy", "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [], "banned": [], "forbidden": [], "epsilon": 0.09, "delta": 0.3, "seed": 7, "max_new_tokens": 512, "stop": ["x"], "tree_rows": 0}', '{"session_id": "s", "request_id": "r", "token_ids": [1, 2, 3], "stop_reason": "eos", "num_prompt_tokens": 4, "num_given_tokens": 0, "num_cached_tokens": 1, "num_steps": 2, "accept_lengths": [2, 1], "time_to_first_token_s": 0.1, "prefill_s": 0.2, "decode_s": 0.3, "num_rested": 0, "plain_step_s": 0.004, "settings": {"drafter": "medusa", "rule": "greedy", "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [[3, -0.5]], "banned": [], "forbidden": [[1, 2]], "epsilon": 0.09, "delta": 0.3, "seed": 0, "max_new_tokens": 512, "stop": [], "tree_rows": 0}}');
INSERT INTO answers (message, model, model_key, state, settings, done) VALUES (8, 'Pebble', '/models/pebble', 'done', '{"drafter": "medusa", "rule": "greedy", "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [], "banned": [], "forbidden": [], "epsilon": 0.09, "delta": 0.3, "seed": 7, "max_new_tokens": 512, "stop": ["x"], "tree_rows": 0}', '{"session_id": "s", "request_id": "r", "token_ids": [1, 2, 3], "stop_reason": "eos", "num_prompt_tokens": 4, "num_given_tokens": 0, "num_cached_tokens": 1, "num_steps": 2, "accept_lengths": [2, 1], "time_to_first_token_s": 0.1, "prefill_s": 0.2, "decode_s": 0.3, "num_rested": 0, "plain_step_s": 0.004, "settings": {"drafter": "medusa", "rule": "greedy", "temperature": 0.7, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "logit_bias": [[3, -0.5]], "banned": [], "forbidden": [[1, 2]], "epsilon": 0.09, "delta": 0.3, "seed": 0, "max_new_tokens": 512, "stop": [], "tree_rows": 0}}');
INSERT INTO steps (number, message, packed) VALUES (1, 2, X'789CA593C16E842010865F65C3B55303280A7D8EDE261C4C4BB63DE86E804D0F4DDFBDE378E8D02B1E0C197FBF4FF2CBB72A697F4FB9A817445514A8AC6204556E8FFC96CEE97ECDEBF674FFC86BA1099808A8EA9AAFA92AD01CAEE9CE510D1AE866ACB7CE1DB1D72F22AAC8C30816464043197D4C065A0DE3BF0B4C7AD6811E508412769CDCBCF8A07905E1241D903FC7ED221D53AFC3F08BF4AD688564FB9492B95B621845945148F68794F86E8965D4043809494D526274B76564960374C252A0B174376F2666CD80B3B05CF6C6D2DFBD63D602B8C81FAC3696FEF2676679402FF7B23596FEF6176605C020F7929B03D9DFBE3F5974EE8D3CF869683CFDFD87187F7E01969A0987');
INSERT INTO steps (number, message, packed) VALUES (2, 4, X'789CA5924D0EC2201046AF6266EBD8F05B5B0FE025088B464975D16AA0AE8C77773A2E1CDDC2824C868FF708F08492E673CA050E214001840C312294DB239FD2A73B8F7998B6F74B1E0A7550470CB00C794C0BA0E2F092EE1C55A890266D3AE3FD1A3BDE8808919B110D5A0C9A326AED345435F66FA04E3BD5D302452861ACF3EDBEEB1557D87F482BE4EB7864E970B50ECD1BE9ACC108C9669292B65AA21945142B24D7594ABA6A896194C3E0E4752D52A255B5C532CB63F0C2B27E1461A97E79ED98D5626885A5F991D86A898FF1F5061F73B17B');
INSERT INTO steps (number, message, packed) VALUES (3, 6, X'789CA5963D4FDC401086FF0ADA3603F2CCAEBFF81D742B1756B020450E645FAA0809A8E9518A549044912248A45429D77F2CE35DA4CC50A4992B2C6BBDF73EA7DD779FF347B74CBBD3695EDC718C6E71E066370CE0968B0FF3DBA98CEECEE6F1FD9BCBF3795C78047080E8F6E37C36ED1D5479F27EBACC532BA8802F481DD5F536EDE49C13DD90070720F01091E754DBC811DF1DF9571FC0E9B0EAF9014FE119E443DDB45D5FE53BE84BD216F28F31EE2523581998BFC8BF3592801CBC9390C60CC11CC5295E40960309E9CC10CA5101621090DD85846065A6F89C5543ACE57AA94D41F3CE63C8590DC44650A65151EC7B5FE7AC16622B28C76A5BD0BEF94DCEEA207682B27E4D9F15C7BEFF6DCEEA21F682937EAD8FEA50DA1BD0952C3EFB280F7FFA937E2892BD052F02D80C2015B03EA41B453237818A05B8B811A507D2D3FA4591CC6DA0A202DC62A40CD263FAAE48E63E50F1011F93884137EFA724797323A83801590A28AD90EED707453237828A17F8504694664837E95991EC8D286E409603B67AF53E2992BD11C50F2C8088D210E9F7ABD5B337A218025911A81C719BEED49FAABD11C5112C9B48D57F4E6EB037A23882D811241D91BEE9D50BE646F8973785ED558174F7542382B911BE38823886BC5EBD6B453237C21747B0402305D508C5E9CD1C3F0C577F012AC3614C');
INSERT INTO steps (number, message, packed) VALUES (4, 8, X'789CA594C14E843010865F65D38B07C74D5B28B43E87B7490FA80D6BD485B4ECC9F8EE0EC5C4A9D7E140C8F0F37FC0CC3F5FAAA4EB6BCA453D22AAA240651523A8B2DCF24B3AAAD7394F9FF7EB254F852A6022A0DAA63CA74D81AEE22DAD55AA41039D8CF5D6B95DF6742147156B3182850ED09046EF95335D9DBB7F0798F4A003DD2009296CD7BB61F441D72B0887D36EF2C74827CEE8A50C531FA47745CB201F6F1C328821A65A914BC72073F3B7BC1862AB550FD833C8D6408C1653BAEAE5001DA32CB78622EEBCE9ABD70038304A490D45DE7B57BD46C091514EEF0D45DEFCA17A7940CFC7B8FD1679F7C7EA150003A3AC0DC5CABBEF0F2FCABDE1C1CF770D47DEFFDFE8EFD9E7E12F4DF8AD7802EC917E1A58343CFFCF4BC311CF803D1680D96DF80A98B686239E027BEC008A061ABE05CE0D2688315D8CDF3F251A6222');
INSERT INTO message_words (rowid, words) VALUES (1, 'how long does green tea steep?
notes.txt');
INSERT INTO message_words (rowid, words) VALUES (2, 'two minutes, not more.');
INSERT INTO message_words (rowid, words) VALUES (3, 'and black tea?
notes.txt');
INSERT INTO message_words (rowid, words) VALUES (4, 'four minutes.');
INSERT INTO message_words (rowid, words) VALUES (5, 'and jorg''s creme brulee?
notes.txt');
INSERT INTO message_words (rowid, words) VALUES (6, 'that is no tea:  東  京  の  天  気  は  晴  れ  で  す  。 ');
INSERT INTO message_words (rowid, words) VALUES (7, 'name a ship.
notes.txt');
INSERT INTO message_words (rowid, words) VALUES (8, 'the lighthouse keeper''s boat.');
INSERT INTO title_words (rowid, words) VALUES (1, 'about tea');
INSERT INTO title_words (rowid, words) VALUES (2, 'ships');
PRAGMA user_version = 1;
