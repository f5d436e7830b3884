/* Locks, beats, fences and trust: what keeps two runs of one lock apart when a node hangs, dies or loses its database.
 *
 * Explained in docs/model.md; `make model` checks it, and that each mutation (-DNAME: a line of the protocol left out)
 * is found. The names are those of the code: engine/beats.py, engine/orphans.py, membership.py, store/claim.py,
 * store/take.py, store/settle.py, supervisor/loop.py.
 *
 * Node 0 may hang, be cut off and be killed; node 1 watches it and takes over. A transaction is one atomic step; between
 * two steps anything may take any time, which is how a node hangs, is cut off, or meets a slow database. Time is ticks of
 * a clock that nobody reads: only how long ago something was is known, and no longer than matters. */

#ifndef RUNS
#define RUNS 1              /* of the one lock */
#endif
#ifndef IDS
#define IDS 3               /* node ids that can be given: two at the start, then one more */
#endif
#ifndef FENCES
#define FENCES 3            /* claims that can be made */
#endif
#ifndef KILLS
#define KILLS 1             /* of the daemon or the supervisor of node 0 */
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 1          /* of node 0 at once */
#endif

#define TERM_AT 2           /* TERM_SHARE, KILL_SHARE and the lease itself: what counts is their order */
#define KILL_AT 3
#define LEASE 4
#define NONE 15

mtype = { live, dead, unborn };             /* a node's row */
mtype = { PENDING, RUNNING, COMPLETED };    /* a run's row */
mtype = { serving, dying, gone };           /* a supervisor */
mtype = { absent, living, ended };          /* the child of an attempt */

/* ---- the database */

mtype node_state[IDS] = unborn;
mtype status[RUNS] = PENDING;
byte run_node[RUNS] = NONE;
byte run_fence[RUNS];
byte lock_run = NONE;
byte lock_fence;

/* ---- node 0: its daemon, and the supervisor below it */

bool up = true;
byte id[2];                 /* the id that a daemon has at present */
byte next_id = 2;
mtype supervisor = serving;
byte serves;                /* the id that the supervisor serves */
bool trusted;               /* it was told to trust, and the trust is good */
byte vouched = KILL_AT;     /* ticks since the `before` of the last trust that it was told */
byte asked = KILL_AT;       /* ticks since the `before` of the renewal whose answer is under way */
byte kills = KILLS;

/* ---- node 1, as the watcher of node 0 */

bool same;                  /* node 0's beat is still the one that was seen */
byte seen_for;              /* ticks since it was seen first */
#ifdef SINCE_BEFORE_THE_READ
byte looked = LEASE;
#endif

/* ---- children: those of node 0, then that of node 1 */

#define CHILDREN (ATTEMPTS + 1)
mtype child[CHILDREN] = absent;
byte child_node[CHILDREN] = NONE;
byte alive;

#define LAST (ATTEMPTS - 1)
#define has_children (child[0] == living || child[LAST] == living)
#define is_child_of(k, i) (child[k] == living && child_node[k] == i)

/* ---- the lines of the protocol that a mutation leaves out */

#ifdef NO_TRUST_CHECK_AT_START
#define vouches true
#else
#define vouches (trusted && vouched < TERM_AT)
#endif
#ifdef NO_NODE_CHECK_AT_START
#define is_served(i) true
#else
#define is_served(i) (serves == i)
#endif
#ifdef TAKE_OVER_BEFORE_THE_LEASE
#define seen_through (seen_for >= KILL_AT - 1)
#else
#define seen_through (seen_for >= LEASE)
#endif
#ifdef DECLARE_WITHOUT_THE_BEAT
#define beat_is_the_same true
#else
#define beat_is_the_same same
#endif
#ifdef SETTLE_WITHOUT_NODE_AND_FENCE
#define holds(r, i, f) (status[r] == RUNNING)
#elif defined(SETTLE_WITHOUT_FENCE)
#define holds(r, i, f) (status[r] == RUNNING && run_node[r] == i)
#else
#define holds(r, i, f) (status[r] == RUNNING && run_node[r] == i && run_fence[r] == f)
#endif
#ifdef TERM_WITHOUT_KILL
#define kill_due false
#else
#define kill_due (supervisor == dying && vouched >= KILL_AT && has_children)
#endif
#define term_due (supervisor == serving && vouched >= TERM_AT && has_children)
#ifdef SUPERVISOR_FROZEN
#define on_time true
#else
/* A supervisor touches no disk and no database: what it has to do is done before time goes on. */
#define on_time (!term_due && !kill_due)
#endif

/* ---- steps that several take */

inline older(what, most) {
    if
    :: what < most -> what++
    :: else
    fi
}

/* The beat in the row is another one than was seen. */
inline forget_beat() {
    same = false;
    seen_for = 0
}

inline end_child(k) {
    child[k] = ended;
    child_node[k] = NONE;
    alive--
}

inline end_children() {
    if
    :: child[0] == living -> end_child(0)
    :: else
    fi;
    if
    :: ATTEMPTS > 1 && child[LAST] == living -> end_child(LAST)
    :: else
    fi
}

inline supervise() {
    supervisor = serving;
    serves = id[0];
    trusted = false;
    vouched = KILL_AT
}

inline register() {
    id[0] = next_id;
    next_id++;
    node_state[id[0]] = live;
    forget_beat();
    supervise()
}

/* The socket to its daemon closed, or it is replaced: TERM at once, KILL in five seconds or when the trust ends. */
inline let_die() {
    if
    :: supervisor == serving -> supervisor = dying
    :: else
    fi
}

/* A run leaves RUNNING: its lock is free in the same transaction. */
inline leave(r, what) {
    status[r] = what;
    run_node[r] = NONE;
    if
    :: lock_run == r -> lock_run = NONE
    :: else
    fi
}

/* ---- engine/beats.py and membership.py, of node 0 */

proctype Beats() {
again:
    up;
    {
        do
        :: atomic { node_state[id[0]] == live -> forget_beat(); asked = 0 };    /* tx.nodes.renew */
            if
            :: atomic {                                                         /* extend_trust */
                    supervisor == serving && serves == id[0] ->
#ifdef TRUST_FROM_THE_ANSWER
                    vouched = 0;
#else
                    vouched = asked;
#endif
                    trusted = (vouched < TERM_AT);
                    asked = KILL_AT
                }
            :: asked = KILL_AT                                                  /* the answer was lost */
            fi
        :: atomic { node_state[id[0]] == dead -> let_die() };                   /* begin_anew */
            atomic {
                supervisor == gone;
                if
                :: next_id < IDS -> register()
                :: else -> up = false
                fi
            }
        :: atomic { supervisor == gone && node_state[id[0]] == live -> supervise() }    /* replace_supervisor */
        od
    } unless { !up };
    goto again
}

/* ---- engine/beats.py and engine/orphans.py, of node 1 */

proctype Watch() {
    do
#ifndef NOBODY_WATCHES
    ::
#ifdef SINCE_BEFORE_THE_READ
        looked = 0;
#endif
        if
        :: atomic {                                                             /* _watch_others */
                node_state[id[0]] == live && !same -> same = true;
#ifdef SINCE_BEFORE_THE_READ
                seen_for = looked;
                looked = LEASE
#else
                seen_for = 0
#endif
            }
        :: node_state[id[0]] == live && same && seen_through ->
            atomic {                                                            /* declare_dead: another transaction */
                if
                :: beat_is_the_same && node_state[id[0]] == live ->
                    assert(!is_child_of(0, id[0]) && !is_child_of(LAST, id[0]));    /* no child outlives its lease */
                    node_state[id[0]] = dead;
                    forget_beat()
                :: else
                fi
            }
        :: node_state[id[0]] != live || (same && !seen_through) -> skip
        fi
#else
    :: false
#endif
    od
}

proctype Keeper() {
    do
#ifdef NOBODY_CLOSES_ORPHANS
    :: false
#else
    :: atomic { lock_run != NONE && node_state[run_node[lock_run]] == dead -> leave(lock_run, PENDING) }
#endif
    od
}

/* ---- engine/worker.py: a claim, its child, its settlement */

inline claim(n) {
    lock_run == NONE && lock_fence < FENCES && node_state[id[n]] == live;
    if
    :: status[0] == PENDING -> r = 0
    :: RUNS > 1 && status[RUNS - 1] == PENDING -> r = RUNS - 1
    fi;
    node = id[n];
#ifdef FENCE_OF_THE_RUN
    fence = run_fence[r] + 1;
#else
    fence = lock_fence + 1;
#endif
    assert(fence > lock_fence);                 /* fences grow, per lock */
    lock_fence = fence;
    lock_run = r;
    status[r] = RUNNING;
    run_node[r] = node;
    run_fence[r] = fence
}

inline start(k) {
    child[k] = living;
    child_node[k] = node;
    alive++;
    assert(alive == 1)                          /* no two holders of a lock whose children both live */
}

/* Compare-and-set: a stale holder changes nothing. What ended well is done, the rest is tried again. */
inline settle() {
    if
    :: holds(r, node, fence) && node_state[node] != dead ->
        assert(run_node[r] == node && run_fence[r] == fence && lock_run == r);
        if
        :: leave(r, COMPLETED)
        :: leave(r, PENDING)
        fi
    :: else
    fi
}

proctype Attempt(byte n, k) {
    byte r, fence, node;
again:
    (n == 1 || up) && child[k] != living;       /* of the daemon before it nothing is left */
    {
        do
        :: atomic { claim(n); child[k] = absent };
            atomic {                                                            /* supervisor/loop.py: _refusal */
                if
                :: n == 1 || (supervisor == serving && is_served(node) && vouches) -> start(k)
                :: else -> child[k] = ended
                fi
            };
            child[k] == ended;
            if
            :: atomic { true -> settle() }      /* the answer was lost: settled again, later */
            :: true
            fi;
            atomic { settle(); child[k] = absent; r = 0; fence = 0; node = 0 }
        od
    } unless { n == 0 && !up };
    atomic { r = 0; fence = 0; node = 0 };
    goto again
}

/* ---- supervisor/loop.py, of node 0; a child of node 1 */

proctype Supervisor() {
    do
    :: atomic { child[0] == living -> end_child(0) }
    :: atomic { ATTEMPTS > 1 && child[LAST] == living -> end_child(LAST) }
    :: atomic { child[CHILDREN - 1] == living -> end_child(CHILDREN - 1) }
    :: atomic { term_due -> supervisor = dying; trusted = false }
    :: atomic { kill_due -> end_children() }
    :: atomic { supervisor == dying && !has_children -> supervisor = gone; trusted = false; vouched = KILL_AT }
    od
}

/* ---- what goes wrong, and succession.py: who comes after a daemon that was killed */

proctype Nemesis() {
    do
    :: atomic { kills > 0 && up -> kills--; up = false; asked = KILL_AT; let_die() }
    /* The daemon, a subreaper, ends what a killed supervisor leaves, before it does anything else. */
    :: atomic { kills > 0 && supervisor == serving -> kills--; end_children(); supervisor = gone; trusted = false; vouched = KILL_AT }
#ifdef SUCCEED_WITHOUT_THE_LOCK
    :: atomic { !up && node_state[id[0]] == live -> node_state[id[0]] = dead }
#endif
    :: atomic { !up && supervisor == gone && next_id < IDS -> node_state[id[0]] = dead; register(); up = true }
    od
}

proctype Clock() {
    do
    :: atomic {
            on_time ->
            if
            :: vouched < TERM_AT || has_children -> older(vouched, KILL_AT)
            :: else -> trusted = false; vouched = KILL_AT       /* it refuses starts until it is told again */
            fi;
            older(asked, KILL_AT);
            if
            :: same -> older(seen_for, LEASE)
            :: else
            fi;
#ifdef SINCE_BEFORE_THE_READ
            older(looked, LEASE)
#endif
        }
    od
}

init {
    atomic {
        id[1] = 1;
        node_state[0] = live;
        node_state[1] = live;
        run Beats();
        run Watch();
        run Keeper();
        run Supervisor();
        run Nemesis();
        run Clock();
        run Attempt(0, 0);
        if
        :: ATTEMPTS > 1 -> run Attempt(0, LAST)
        :: else
        fi;
        run Attempt(1, CHILDREN - 1)
    }
}

/* ---- what a dead node ran is taken over: with every loop getting its turn (weak fairness) */

#define lost (lock_run != NONE && run_node[lock_run] == 0 && (!up || id[0] != 0))
#define goes_on (!lost && (status[0] == COMPLETED || status[0] == RUNNING || lock_fence == FENCES))

ltl taken_over { [] (lost -> <> goes_on) }
