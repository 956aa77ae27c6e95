#include "grow.h"

#include <string.h>

/* A child of `parent`, if the heads offer one of that rank that is worth something. */
static int32_t offer(const float *chances, int32_t heads, int32_t ranks, const Node *nodes,
                     int32_t parent, int32_t rank, Node *to) {
    int32_t depth = nodes[parent].depth + 1;
    if (depth > heads || rank >= ranks) return 0;
    float worth = nodes[parent].worth * chances[(depth - 1) * ranks + rank];
    *to = (Node){worth, parent, depth, rank};
    return worth > 0;
}

/* The children of each node, asked for by depth: a level's parents are the level before. */
static void count_children(const Node *nodes, int32_t count, int32_t *children) {
    int32_t order[MOST_GROWN] = {0};
    memset(children, 0, count * sizeof *children);
    for (int32_t place = 0, end = 1; place < end; place++)
        for (int32_t node = 1; node < count; node++)
            if (nodes[node].parent == order[place]) {
                children[place]++;
                order[end++] = node;
            }
}

int32_t grow_nodes(const float *chances, int32_t heads, int32_t ranks, int32_t rows, Node *nodes) {
    Node offers[MOST_GROWN + 1];
    int32_t count = 1;
    nodes[0] = (Node){1.0f, -1, 0, 0};
    int32_t open = offer(chances, heads, ranks, nodes, 0, 0, offers);
    while (count < rows && open > 0) {
        int32_t best = 0;
        for (int32_t i = 1; i < open; i++)
            if (offers[i].worth > offers[best].worth) best = i;
        Node taken = nodes[count] = offers[best];
        /* Its next sibling takes its place among the offers, its first child comes behind them. */
        if (!offer(chances, heads, ranks, nodes, taken.parent, taken.rank + 1, offers + best))
            offers[best] = offers[--open];
        open += offer(chances, heads, ranks, nodes, count++, 0, offers + open);
    }
    return count;
}

int32_t grow(const float *chances, int32_t heads, int32_t ranks, int32_t rows, int32_t *children) {
    Node nodes[MOST_GROWN];
    int32_t count = grow_nodes(chances, heads, ranks, rows, nodes);
    count_children(nodes, count, children);
    return count;
}
