#include "growth.h"

#include <string.h>

/* What may follow one path, merged of all sources. */
typedef struct {
    double mixed[MOST_FOLLOWING], alone[MOST_FOLLOWING];
    int32_t tokens[MOST_FOLLOWING], marks[MOST_FOLLOWING];
    int32_t count;
} Following;

/* The upper ends of the ranges of chances, but for the last. */
static const double RANGES[TRUST_RANGES - 1] = {0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8};

void grow_begin(Growth *growth) {
    for (int32_t i = 0; i < growth->rows; i++) growth->order[i] = i;
    growth->nodes[0] = (Node){1.0, 1.0, -1, 0, -1, 0, ON_SPINE, 0};
    growth->open[0] = 0;
    growth->count = growth->num_open = 1;
    growth->level = growth->num_offers = 0;
    if (growth->offers != NULL) growth->offered[0] = -1;
}

static int32_t place_of(const int32_t *tokens, int32_t count, int32_t token) {
    for (int32_t place = 0; place < count; place++)
        if (tokens[place] == token) return place;
    return -1;
}

/* Add what a source says. share: of its chances in the mixture. */
static void merge(Following *following, const Candidates *source, int32_t start, int32_t count,
                  double share) {
    int32_t before = following->count;
    for (int32_t i = start; i < start + count; i++) {
        int32_t place = place_of(following->tokens, before, source->tokens[i]);
        if (place < 0) {
            if (following->count == MOST_FOLLOWING) return;
            place = following->count++;
            following->tokens[place] = source->tokens[i];
            following->mixed[place] = following->alone[place] = 0;
            following->marks[place] = 0;
        }
        double chance = source->chances[i];
        following->marks[place] |= source->mark;
        if (source->weight > 0)
            following->mixed[place] += share * chance;
        else if (chance > following->alone[place])
            following->alone[place] = chance;
    }
}

/* Put a node in its place among all, of equals behind the earlier ones; the least valuable is
   dropped for it. Returns its slot; -1 where it has none. As no node is worth more than its parent,
   none is dropped before those below it. */
static int32_t insert(Growth *growth, Node node) {
    int32_t *order = growth->order, place = growth->count;
    Node *nodes = growth->nodes;
    if (!(node.worth > growth->least)) return -1;
    if (place == growth->rows) {
        place--;
        if (place == 0 || nodes[order[place]].worth >= node.worth) return -1;
    } else {
        growth->count++;
    }
    int32_t slot = order[place];
    for (; place > 1 && nodes[order[place - 1]].worth < node.worth; place--) order[place] = order[place - 1];
    order[place] = slot;
    nodes[slot] = node;
    return slot;
}

/* Tell an offer behind a node that is told itself, if it is worth telling. Returns its place among
   all that are told; -1 where it isn't. */
static int32_t tell(Growth *growth, Node node) {
    int32_t above = growth->offered[node.parent], place = growth->num_offers;
    if (!(node.worth >= 0.01) || place == MOST_OFFERS || (above < 0 && node.parent != 0)) return -1;
    growth->offers[place] = (Offer){above, node.token, (float)node.chance};
    growth->num_offers++;
    return place;
}

/* Give up what doesn't pay at its place: with more nodes before it, it would pay still less. */
static void prune(Growth *growth) {
    if (growth->floors == NULL) return;
    for (int32_t place = 1; place < growth->count; place++)
        if (!(growth->nodes[growth->order[place]].worth > growth->floors[place - 1])) {
            growth->count = place;
            return;
        }
}

static void write_path(const Node *nodes, int32_t node, int32_t *path, int32_t level) {
    for (; level > 0; node = nodes[node].parent) path[--level] = nodes[node].token;
}

/* Open the paths that the last level brought, but for those whose children couldn't pay. */
static void open_paths(Growth *growth) {
    int32_t level = ++growth->level;
    const float *asking = growth->asking == NULL ? NULL : growth->asking + 3 * level;
    growth->num_open = 0;
    if (level == MOST_LEVELS) return;
    for (int32_t place = 1; place < growth->count; place++) {
        int32_t slot = growth->order[place];
        if (growth->nodes[slot].depth != level || place + 1 == growth->rows) continue;
        double worth = growth->nodes[slot].worth;
        double floor = growth->floors == NULL ? 0 : growth->floors[place];
        if (growth->floors != NULL && !(worth > floor)) continue;
        double price = asking == NULL ? 0 : asking[growth->num_open == 0 ? 1 : 2];
        if (price > 0 && !(asking[0] * (worth - floor) > price)) continue;
        write_path(growth->nodes, slot, growth->paths + growth->num_open * level, level);
        growth->open[growth->num_open++] = slot;
    }
}

/* How much of its chance a token is trusted with. */
static double trusted(const Growth *growth, double chance, int32_t marks, int32_t kind,
                      int32_t num_sources) {
    int32_t source = num_sources, range = 0, depth = growth->level;
    if ((marks & (marks - 1)) == 0)
        for (source = 0; marks >> source != 1; source++) continue;
    while (range < TRUST_RANGES - 1 && chance > RANGES[range]) range++;
    if (depth >= TRUST_DEPTHS) depth = TRUST_DEPTHS - 1;
    double right = chance * growth->trust[((source * NUM_KINDS + kind) * TRUST_DEPTHS + depth) * TRUST_RANGES + range];
    return right > 1 ? 1 : right;
}

/* Put a node in its place, and note which offer it is. */
static void take(Growth *growth, Node node, int32_t offer) {
    int32_t slot = insert(growth, node);
    if (growth->offers != NULL && slot >= 0) growth->offered[slot] = offer;
}

/* Put what follows a path in its place among all; of a chain's only what is worth most. */
static void insert_all(Growth *growth, const Following *following, int32_t parent,
                       int32_t num_sources) {
    const Node above = growth->nodes[parent];
    double most = -1, next = -1;
    int32_t best = -1, second = -1;
    for (int32_t i = 0; i < following->count; i++) {
        double chance = following->mixed[i];
        if (chance > most) {
            next = most, second = best;
            most = chance, best = i;
        } else if (chance > next) {
            next = chance, second = i;
        }
    }
    Node chosen = {-1.0, 0.0, parent, 0, 0, 0, 0, 0};
    int32_t chosen_offer = -1;
    for (int32_t i = 0; i < following->count; i++) {
        double chance = following->mixed[i], right = chance;
        int32_t marks = following->marks[i];
        int32_t kind = i == second ? SECOND : FURTHER;
        if (i == best) kind = above.kind == ON_SPINE ? ON_SPINE : OFF_SPINE;
        if (growth->trust != NULL) right = trusted(growth, chance, marks, kind, num_sources);
        Node node = {above.worth * right,  chance, parent, growth->level + 1,
                     following->tokens[i], marks,  kind,   0};
        int32_t offer = growth->offers == NULL ? -1 : tell(growth, node);
        if (!growth->chain)
            take(growth, node, offer);
        else if (node.worth > chosen.worth)
            chosen = node, chosen_offer = offer;
    }
    if (growth->chain && chosen.depth > 0) take(growth, chosen, chosen_offer);
}

int32_t grow_level(Growth *growth, const Candidates *sources, int32_t num_sources) {
    Following following; /* not all of it is ever written */
    int32_t starts[32] = {0};
    for (int32_t path = 0; path < growth->num_open; path++) {
        int32_t counts[32];
        double weight = 0;
        for (int32_t s = 0; s < num_sources; s++) {
            counts[s] = sources[s].counts == NULL ? sources[s].size : sources[s].counts[path];
            if (counts[s] > 0) weight += sources[s].weight;
        }
        following.count = 0;
        for (int32_t s = 0; s < num_sources; s++) {
            double share = weight > 0 ? sources[s].weight / weight : 0;
            merge(&following, sources + s, starts[s], counts[s], share);
            if (sources[s].counts != NULL) starts[s] += counts[s];
        }
        int32_t parent = growth->open[path];
        if (growth->nodes[parent].depth != growth->level) continue; /* a better one took its slot */
        for (int32_t i = 0; i < following.count; i++)
            if (following.alone[i] > following.mixed[i]) following.mixed[i] = following.alone[i];
        insert_all(growth, &following, parent, num_sources);
    }
    prune(growth);
    open_paths(growth);
    return growth->num_open;
}

/* How many of the most valuable nodes are together worth most beyond their price. */
static int32_t paying(Growth *growth) {
    double worth = 0, most = 0;
    int32_t best = 1;
    growth->promised = 0;
    for (int32_t i = 1; i < growth->count; i++) {
        worth += growth->nodes[growth->order[i]].worth;
        if (growth->prices != NULL && worth - growth->prices[i] <= most) continue;
        most = growth->prices == NULL ? worth : worth - growth->prices[i];
        growth->promised = worth;
        best = i + 1;
    }
    return best;
}

int32_t grow_end(Growth *growth) {
    int32_t count = paying(growth), queue[MOST_GROWN];
    int32_t *children = growth->finished, *marks = children + count, *tokens = marks + count;
    memset(growth->finished, 0, (size_t)3 * (size_t)count * sizeof *growth->finished);
    queue[0] = 0;
    for (int32_t place = 0, end = 1; place < end; place++)
        for (int32_t i = 1; i < count; i++) {
            int32_t slot = growth->order[i];
            const Node *node = growth->nodes + slot;
            if (node->parent != queue[place]) continue;
            children[place]++;
            marks[end] = node->marks;
            tokens[end] = node->token;
            growth->chances[end - 1] = (float)node->chance;
            queue[end++] = slot;
        }
    return count;
}
