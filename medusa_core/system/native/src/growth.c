#include "abi.h"

#include <string.h>

/* Candidates after one path, merged from all sources. */
typedef struct {
    double mixed[MAX_CANDIDATES], pointed[MAX_CANDIDATES]; /* by sources with and without a weight */
    int32_t tokens[MAX_CANDIDATES], sources[MAX_CANDIDATES];
    int32_t count;
} Merged;

static const double RANGES[] = RATIO_RANGES;
enum { NUM_RANGES = sizeof RANGES / sizeof *RANGES + 1, NUM_RANKS = LOWER + 1 };

void grow_begin(Growth *growth) {
    for (int32_t i = 0; i < growth->max_nodes; i++) growth->order[i] = i;
    growth->nodes[0] = (Node){1.0, 1.0, -1, 0, -1, 0, GREEDY};
    growth->open[0] = 0;
    growth->num_nodes = growth->num_open = 1;
    growth->level = growth->num_offers = 0;
    if (growth->offers != NULL) growth->offer_of_node[0] = -1;
}

static int32_t index_of(const int32_t *tokens, int32_t count, int32_t token) {
    for (int32_t i = 0; i < count; i++)
        if (tokens[i] == token) return i;
    return -1;
}

/* Add a source's candidates; `share` is its normalized weight in the mixture. */
static void merge(Merged *merged, const Candidates *source, int32_t start, int32_t count, double share) {
    int32_t before = merged->count; /* a source's tokens differ from each other */
    for (int32_t i = start; i < start + count; i++) {
        int32_t place = index_of(merged->tokens, before, source->tokens[i]);
        if (place < 0) {
            if (merged->count == MAX_CANDIDATES) return;
            place = merged->count++;
            merged->tokens[place] = source->tokens[i];
            merged->mixed[place] = merged->pointed[place] = 0;
            merged->sources[place] = 0;
        }
        double probability = source->probabilities[i];
        merged->sources[place] |= source->source;
        if (source->weight > 0)
            merged->mixed[place] += share * probability;
        else if (probability > merged->pointed[place])
            merged->pointed[place] = probability;
    }
}

/* Insert a node into the order by value, after equal ones, and drop the last one if there is no room.
   Returns its slot; −1 if it isn't inserted. As no node has a higher value than its parent, none is
   dropped before its descendants. */
static int32_t insert(Growth *growth, Node node) {
    int32_t *order = growth->order, place = growth->num_nodes;
    Node *nodes = growth->nodes;
    if (!(node.value > growth->min_value)) return -1;
    if (place == growth->max_nodes) {
        place--;
        if (place == 0 || nodes[order[place]].value >= node.value) return -1;
    } else {
        growth->num_nodes++;
    }
    int32_t slot = order[place];
    for (; place > 1 && nodes[order[place - 1]].value < node.value; place--) order[place] = order[place - 1];
    order[place] = slot;
    nodes[slot] = node;
    return slot;
}

/* Record a candidate after a recorded node, if its value is high enough. Returns its index, or −1. */
static int32_t record_offer(Growth *growth, Node node) {
    int32_t parent = growth->offer_of_node[node.parent], place = growth->num_offers;
    int32_t is_connected = parent >= 0 || node.parent == 0;
    if (!(node.value >= MIN_OFFER_VALUE) || place == MAX_OFFERS || !is_connected) return -1;
    growth->offers[place] = (Offer){parent, node.token, (float)node.probability};
    growth->num_offers++;
    return place;
}

/* Drop unprofitable nodes: with more nodes before them they would be even less profitable. */
static void prune(Growth *growth) {
    if (growth->min_values == NULL) return;
    for (int32_t place = 1; place < growth->num_nodes; place++)
        if (!(growth->nodes[growth->order[place]].value > growth->min_values[place - 1])) {
            growth->num_nodes = place;
            return;
        }
}

static void write_path(const Node *nodes, int32_t node, int32_t *path, int32_t level) {
    for (; level > 0; node = nodes[node].parent) path[--level] = nodes[node].token;
}

/* Open the nodes of the last level whose children may be profitable and are worth drafting. */
static void open_paths(Growth *growth) {
    int32_t level = ++growth->level;
    const float *costs = growth->draft_costs == NULL ? NULL : growth->draft_costs + 3 * level;
    growth->num_open = 0;
    if (level == MAX_LEVELS) return;
    for (int32_t place = 1; place < growth->num_nodes; place++) {
        int32_t slot = growth->order[place];
        if (growth->nodes[slot].depth != level || place + 1 == growth->max_nodes) continue;
        double value = growth->nodes[slot].value;
        double min_value = growth->min_values == NULL ? 0 : growth->min_values[place];
        if (growth->min_values != NULL && !(value > min_value)) continue;
        double cost = costs == NULL ? 0 : costs[growth->num_open == 0 ? 1 : 2];
        if (cost > 0 && !(costs[0] * (value - min_value) > cost)) continue;
        write_path(growth->nodes, slot, growth->paths + growth->num_open * level, level);
        growth->open[growth->num_open++] = slot;
    }
}

/* A token's probability times its acceptance ratio. */
static double corrected(const Growth *growth, double probability, int32_t sources, int32_t rank,
                        int32_t num_sources) {
    int32_t source = num_sources, range = 0, depth = growth->level;
    if ((sources & (sources - 1)) == 0)
        for (source = 0; sources >> source != 1; source++) continue;
    while (range < NUM_RANGES - 1 && probability > RANGES[range]) range++;
    if (depth >= RATIO_DEPTHS) depth = RATIO_DEPTHS - 1;
    int32_t index = ((source * NUM_RANKS + rank) * RATIO_DEPTHS + depth) * NUM_RANGES + range;
    double product = probability * growth->acceptance_ratios[index];
    return product > 1 ? 1 : product;
}

/* Insert a node, and note the index of its offer. */
static void insert_offered(Growth *growth, Node node, int32_t offer) {
    int32_t slot = insert(growth, node);
    if (growth->offers != NULL && slot >= 0) growth->offer_of_node[slot] = offer;
}

/* Insert the candidates after a path; in a chain only the most valuable one. */
static void insert_all(Growth *growth, const Merged *merged, int32_t parent, int32_t num_sources) {
    const Node above = growth->nodes[parent];
    double highest = -1, next = -1;
    int32_t best = -1, second = -1;
    for (int32_t i = 0; i < merged->count; i++) {
        double probability = merged->mixed[i];
        if (probability > highest) {
            next = highest, second = best;
            highest = probability, best = i;
        } else if (probability > next) {
            next = probability, second = i;
        }
    }
    Node chosen = {.value = -1.0, .parent = parent};
    int32_t chosen_offer = -1;
    for (int32_t i = 0; i < merged->count; i++) {
        double probability = merged->mixed[i], product = probability;
        int32_t sources = merged->sources[i];
        int32_t rank = i == second ? SECOND : LOWER;
        if (i == best) rank = above.rank == GREEDY ? GREEDY : FIRST;
        if (growth->acceptance_ratios != NULL)
            product = corrected(growth, probability, sources, rank, num_sources);
        Node node = {above.value * product, probability, parent, growth->level + 1,
                     merged->tokens[i],     sources,     rank};
        int32_t offer = growth->offers == NULL ? -1 : record_offer(growth, node);
        if (!growth->is_chain)
            insert_offered(growth, node, offer);
        else if (node.value > chosen.value)
            chosen = node, chosen_offer = offer;
    }
    if (growth->is_chain && chosen.depth > 0) insert_offered(growth, chosen, chosen_offer);
}

int32_t grow_level(Growth *growth, const Candidates *sources, int32_t num_sources) {
    Merged merged; /* large: only the first `count` entries are initialized */
    int32_t starts[MAX_SOURCES] = {0};
    for (int32_t path = 0; path < growth->num_open; path++) {
        int32_t counts[MAX_SOURCES];
        double weight = 0;
        for (int32_t s = 0; s < num_sources; s++) {
            counts[s] = sources[s].counts == NULL ? sources[s].size : sources[s].counts[path];
            if (counts[s] > 0) weight += sources[s].weight;
        }
        merged.count = 0;
        for (int32_t s = 0; s < num_sources; s++) {
            double share = weight > 0 ? sources[s].weight / weight : 0;
            merge(&merged, sources + s, starts[s], counts[s], share);
            if (sources[s].counts != NULL) starts[s] += counts[s];
        }
        int32_t parent = growth->open[path];
        if (growth->nodes[parent].depth != growth->level) continue; /* its slot has been reused */
        for (int32_t i = 0; i < merged.count; i++)
            if (merged.pointed[i] > merged.mixed[i]) merged.mixed[i] = merged.pointed[i];
        insert_all(growth, &merged, parent, num_sources);
    }
    prune(growth);
    open_paths(growth);
    return growth->num_open;
}

/* Number of the most valuable nodes whose total value most exceeds their cost. */
static int32_t count_profitable(Growth *growth) {
    double value = 0, highest = 0;
    int32_t best = 1;
    growth->expected_accepted = 0;
    for (int32_t i = 1; i < growth->num_nodes; i++) {
        value += growth->nodes[growth->order[i]].value;
        double gain = growth->row_costs == NULL ? value : value - growth->row_costs[i];
        if (growth->row_costs != NULL && gain <= highest) continue;
        highest = gain;
        growth->expected_accepted = value;
        best = i + 1;
    }
    return best;
}

int32_t grow_end(Growth *growth) {
    int32_t count = count_profitable(growth), queue[MAX_TREE_NODES];
    int32_t *children = growth->result, *sources = children + count, *tokens = sources + count;
    memset(growth->result, 0, (size_t)3 * (size_t)count * sizeof *growth->result);
    queue[0] = 0;
    for (int32_t place = 0, end = 1; place < end; place++)
        for (int32_t i = 1; i < count; i++) {
            int32_t slot = growth->order[i];
            const Node *node = growth->nodes + slot;
            if (node->parent != queue[place]) continue;
            children[place]++;
            sources[end] = node->sources;
            tokens[end] = node->token;
            growth->probabilities[end - 1] = (float)node->probability;
            queue[end++] = slot;
        }
    return count;
}
