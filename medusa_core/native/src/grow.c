#include "grow.h"

#include <string.h>

/* How much phrases count beside a head: the first one reads the root as they do, the others don't
   know which token is before theirs. */
static const double SHARE_AT_ONCE = 0.5, SHARE_DEEPER = 0.7;

/* What may become a node, the best first, of equals the earlier; no more than there is room for. */
typedef struct {
    Node nodes[MOST_GROWN];
    int32_t count, room;
    double least;
} Offers;

static int32_t is_too_little(const Offers *offers, double worth) {
    if (!(worth > offers->least) || offers->room == 0) return 1;
    return offers->count == offers->room && offers->nodes[offers->count - 1].worth >= worth;
}

static void offer(Offers *offers, Node node) {
    if (is_too_little(offers, node.worth)) return;
    int32_t place = offers->count < offers->room ? offers->count++ : offers->count - 1;
    for (; place > 0 && offers->nodes[place - 1].worth < node.worth; place--)
        offers->nodes[place] = offers->nodes[place - 1];
    offers->nodes[place] = node;
}

static Node take_best(Offers *offers) {
    Node best = offers->nodes[0];
    memmove(offers->nodes, offers->nodes + 1, --offers->count * sizeof best);
    offers->room--;
    if (offers->count > offers->room) offers->count = offers->room;
    return best;
}

static Followers followers_of(const Known *known, const Node *nodes, int32_t node) {
    if (known->phrases == NULL) return (Followers){0};
    int32_t recent[MOST_CONTEXT], size = 0, longest = known->phrases->longest;
    for (; node > 0 && size < longest; node = nodes[node].parent) recent[size++] = nodes[node].token;
    for (int64_t i = known->length - 1; i >= 0 && size < longest; i--) recent[size++] = known->text[i];
    return behind(known->phrases, recent, size);
}

static int32_t place_of(const int32_t *tokens, int32_t count, int32_t token) {
    int32_t place = 0;
    while (place < count && tokens[place] != token) place++;
    return place < count ? place : -1;
}

/* Offer what may come below a node. */
static void expand(const Known *known, const Node *nodes, int32_t parent, Offers *offers) {
    int32_t above = nodes[parent].depth, depth = above + 1;
    if (depth > MOST_DEPTH && depth > known->heads) return;
    int32_t ranks = above < known->heads ? known->ranks : 0, first = above * ranks;
    const int32_t *guesses = known->guesses + first;
    const float *chances = known->chances + first;
    Followers followers = followers_of(known, nodes, parent);
    double share = ranks == 0 ? 1 : above == 0 ? SHARE_AT_ONCE : SHARE_DEEPER;
    double rest = followers.count == 0 ? 1 : 1 - share, worth = nodes[parent].worth;
    for (int32_t i = 0; i < followers.count; i++) {
        int32_t rank = place_of(guesses, ranks, followers.tokens[i]);
        double chance = share * followers.chances[i] + (rank < 0 ? 0 : rest * chances[rank]);
        int32_t marks = rank < 0 ? BY_PHRASES : BY_PHRASES | BY_HEADS;
        int32_t place = rank < 0 ? -1 : first + rank;
        offer(offers, (Node){worth * chance, parent, depth, followers.tokens[i], place, marks});
    }
    for (int32_t rank = 0; rank < ranks; rank++) {
        double chance = rest * chances[rank];
        if (is_too_little(offers, worth * chance)) return;
        if (place_of(followers.tokens, followers.count, guesses[rank]) < 0)
            offer(offers, (Node){worth * chance, parent, depth, guesses[rank], first + rank, BY_HEADS});
    }
}

static double floor_at(const float *floors, int32_t count) {
    return floors == NULL ? 0 : floors[count - 1];
}

int32_t grow(const Known *known, int32_t rows, const float *floors, double least, Node *nodes) {
    Offers offers; /* not all of it is ever written */
    int32_t count = 1;
    offers.count = 0;
    offers.room = rows - 1;
    offers.least = least;
    nodes[0] = (Node){1.0, -1, 0, -1, -1, 0};
    expand(known, nodes, 0, &offers);
    while (count < rows && offers.count > 0 && offers.nodes[0].worth > floor_at(floors, count)) {
        nodes[count] = take_best(&offers);
        count++;
        /* A child is worth no more than its parent. */
        if (count < rows && nodes[count - 1].worth > floor_at(floors, count))
            expand(known, nodes, count - 1, &offers);
    }
    return count;
}
