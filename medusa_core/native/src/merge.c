#include "merge.h"

#include <string.h>

/* What a lookup is worth where phrases are known and make no row of the same. */
static const double UNSAID = 0.5;

enum { MOST_NODES = MOST_GROWN + MOST_MATCHES * DEEPEST };

/* What followed an earlier occurrence of a suffix of so many tokens. */
typedef struct {
    const int32_t *tokens;
    int64_t size;
    int32_t suffix;
} Match;

/* The nodes of all, those that were grown first. */
typedef struct {
    Node nodes[MOST_NODES];
    int32_t count;
} Trie;

static int32_t is_known(const Match *matches, int32_t count, const Match *match) {
    for (int32_t i = 0; i < count; i++)
        if (matches[i].size == match->size &&
            !memcmp(matches[i].tokens, match->tokens, match->size * sizeof *match->tokens))
            return 1;
    return 0;
}

/* What followed earlier occurrences of the text's end, behind longer suffixes first and behind the
   latest first. Suffixes that make nothing likelier than `least` aren't looked for. */
static int32_t look_up(const int32_t *text, int64_t length, const float *trust, double least,
                       int32_t deepest, Match *matches) {
    int32_t count = 0;
    if (trust == NULL || deepest < 1) return 0;
    for (int32_t suffix = LONGEST_SUFFIX; suffix > 0; suffix--) {
        if (suffix >= length || trust[(suffix - 1) * DEEPEST] <= least) continue;
        const int32_t *end = text + length - suffix;
        for (int64_t place = length - 1; place >= suffix && count < MOST_MATCHES; place--) {
            if (text[place - 1] != text[length - 1] ||
                memcmp(text + place - suffix, end, suffix * sizeof *text))
                continue;
            int64_t size = length - place < deepest ? length - place : deepest;
            Match match = {text + place, size, suffix};
            if (!is_known(matches, count, &match)) matches[count++] = match;
        }
    }
    return count;
}

static int32_t child_with(const Trie *trie, int32_t parent, int32_t token) {
    for (int32_t node = 1; node < trie->count; node++)
        if (trie->nodes[node].parent == parent && trie->nodes[node].token == token) return node;
    return -1;
}

/* Put the beginnings of a match that are worth more than `least` into the trie.
   unsaid: how much less those are worth that weren't grown. */
static void put(Trie *trie, const Match *match, const float *trust, double unsaid, double least) {
    int32_t above = 0;
    for (int32_t depth = 1; depth <= match->size; depth++) {
        double worth = trust[(match->suffix - 1) * DEEPEST + depth - 1];
        if (worth <= least) return;
        int32_t token = match->tokens[depth - 1];
        int32_t node = child_with(trie, above, token);
        if (node < 0) {
            worth *= unsaid;
            if (worth <= least) return;
            node = trie->count++;
            trie->nodes[node] = (Node){worth, above, depth, token, -1, BY_LOOKUP};
        } else {
            trie->nodes[node].marks |= BY_LOOKUP;
            if (trie->nodes[node].worth < worth) trie->nodes[node].worth = worth;
        }
        above = node;
    }
}

/* Nodes by what they are worth, of equals the earlier first, so that no child is before its parent;
   those that were grown lie in that order already, but for the few that have become worth more. */
static void sort(const Trie *trie, int32_t *order) {
    for (int32_t node = 0; node < trie->count; node++) {
        int32_t place = node;
        double worth = trie->nodes[node].worth;
        for (; place > 1 && trie->nodes[order[place - 1]].worth < worth; place--)
            order[place] = order[place - 1];
        order[place] = node;
    }
}

/* How many of the first nodes of an order are together worth most beyond their price, and what they
   are worth. */
static int32_t paying(const Trie *trie, const int32_t *order, int32_t count, const float *prices,
                      double *promised) {
    double worth = 0, most = 0;
    int32_t best = 1;
    *promised = 0;
    for (int32_t i = 1; i < count; i++) {
        worth += trie->nodes[order[i]].worth;
        if (prices != NULL && worth - prices[i] <= most) continue;
        most = prices == NULL ? worth : worth - prices[i];
        *promised = worth;
        best = i + 1;
    }
    return best;
}

/* The first nodes of an order, by depth. */
static void tell(const Trie *trie, const int32_t *order, int32_t count, int32_t *told) {
    int32_t queue[MOST_GROWN];
    int32_t *children = told, *marks = told + count, *tokens = marks + count;
    int32_t *places = tokens + count;
    memset(told, 0, 4 * count * sizeof *told);
    queue[0] = 0;
    for (int32_t place = 0, end = 1; place < end; place++)
        for (int32_t i = 1; i < count; i++) {
            int32_t node = order[i];
            if (trie->nodes[node].parent != queue[place]) continue;
            children[place]++;
            marks[end] = trie->nodes[node].marks;
            tokens[end] = trie->nodes[node].token;
            places[end] = trie->nodes[node].place;
            queue[end++] = node;
        }
}

int32_t merge(Merge *m) {
    Trie trie;
    Match matches[MOST_MATCHES];
    int32_t order[MOST_NODES];
    double least = m->least;
    int32_t count = trie.count = grow(&m->known, m->rows, m->floors, least, trie.nodes);
    /* Only what could take the place of a node that was grown matters. */
    if (count == m->rows) least = trie.nodes[count - 1].worth;
    int32_t deepest = m->rows - 1 < DEEPEST ? m->rows - 1 : DEEPEST;
    double unsaid = m->known.phrases == NULL ? 1 : UNSAID;
    int32_t found = look_up(m->known.text, m->known.length, m->trust, least, deepest, matches);
    for (int32_t i = 0; i < found; i++) put(&trie, matches + i, m->trust, unsaid, least);
    m->suffix = found > 0 ? matches[0].suffix : 0;
    m->offered = found > 0 ? matches[0].tokens[0] : 0;
    sort(&trie, order);
    int32_t most = trie.count < m->rows ? trie.count : m->rows;
    count = paying(&trie, order, most, m->prices, &m->promised);
    tell(&trie, order, count, m->told);
    return count;
}
