------------------------------- MODULE switching -------------------------------
(* How one instance hands its history to the next: the protocols Quorum (and   *)
(* ZLight, whose rules for commits and aborts are the same), Chain and Backup  *)
(* as far as switching sees them, with four replicas of which one lies.        *)
(*                                                                             *)
(* Each repair of the paper is a constant. docs/spec.md says what is modelled, *)
(* what is not, and what TLC finds without each repair.                        *)
EXTENDS histories, TLC

CONSTANTS
    r0, r1, r2, r3,         \* The replicas, in Chain's order.
    Requests,               \* What clients may invoke.
    Schedule,               \* The protocols of the consecutive instances.
    Liar,                   \* The Byzantine replica. Its place matters in Chain.
    LengthMax,              \* The longest log.
    CheckpointEvery,        \* Positions between two checkpoint boundaries.
    OrderedMax,             \* How many requests a Backup orders before it aborts (k).
    \* The repairs. TRUE (or "prefix", "all"): repaired.
    Extraction,             \* abs-S10: "prefix" compares history digests, "position" votes on each position.
    Boundaries,             \* abs-S3: ABORT carries "all" boundaries above the anchor, or only the "next".
    AnchorRule,             \* abs-S2: an init history does not move the anchor, unless Backup left it.
    ReplayFilter,           \* abs-S4: what the init history contains is not logged again.
    AnswerAfterInit,        \* abs-S4: ... and is answered with a digest that covers the init history.
    RollbackOnInit,         \* abs-S5: the state is rebuilt from the init history.
    AgreedK,                \* abs-S6: all replicas have the same k.
    FinalDelivery,          \* abs-S7: Backup acts on what is ordered for good.
    InitFlag,               \* abs-S8: "initialised" is a flag and not "the log is not empty".
    InstanceBoundAborts,    \* abs-D1: ABORTs of an instance initialise the next one and no other.
    InstanceBoundCheckpoints, \* abs-S9: a CHECKPOINT counts in its own instance.
    HistoryBoundAuthenticators, \* abs-S1: Chain's authenticators cover the history digest.
    AuthenticatedAnswers,   \* abs-S1: ... also when a request of the init history is answered.
    Remembers               \* abs-S13: a correct replica never forgets what it has answered.

Replicas == {r0, r1, r2, r3}
Correct == Replicas \ {Liar}
InOrder == SelectSeq(<<r0, r1, r2, r3>>, LAMBDA r : r # Liar)
Pairs == {<<InOrder[n], InOrder[m]>> : <<n, m>> \in {<<1, 2>>, <<1, 3>>, <<2, 3>>}}

\* Schedules by name, since a configuration file cannot hold a sequence.
Quorums == <<"quorum", "quorum">>
Azyzzyva == <<"quorum", "backup", "quorum">>
Aliph == <<"quorum", "chain", "backup">>

VARIABLES
    instance,   \* The current instance, from 1.
    inits,      \* Its valid init histories.
    earlier,    \* What earlier instances committed: the longest histories.
    commits,    \* What clients have committed in this instance: request, history, reply.
    outcomes,   \* What each choice of ABORTs proves: the set of one history, or of none.
    stage,      \* stage[r]: "new", "on", "stopped", or "mute": stopped before it ever answered.
    log,        \* log[r]: what r has logged in this instance, the init history included.
    base,       \* base[r]: the length of the init history that r started from.
    anchor,     \* anchor[r]: the history up to r's anchor, before which r cannot roll back.
    from,       \* from[r]: where r's ABORT begins, once it has stopped.
    applied,    \* applied[r]: the requests that r's state is the result of.
    votes       \* CHECKPOINTs of earlier instances, if those count.

variables == <<instance, inits, earlier, commits, outcomes, stage, log, base, anchor, from, applied, votes>>

Protocol == Schedule[instance]

-------------------------------------------------------------------------------
(* ABORT and extraction. A report lists the request digests from an anchor up  *)
(* and the history digest at the anchor, so it supports the history digests at *)
(* its positions from..Len(log). The liar may report any list at all.          *)

Reports(logs) == UNION {[from : 0..Len(l), log : {l}] : l \in logs}
AnyLog == SequencesUpTo(Requests, LengthMax)
AnyReport == Reports(AnyLog)
HonestReports == Reports({l \in AnyLog : ReplayFilter => ~HasDuplicates(l)})

IsBoundary(p) == p % CheckpointEvery = 0

\* The positions of the boundaries whose digests a report carries.
Listed(x) ==
    {p \in x.from..Len(x.log) : IsBoundary(p) /\ (Boundaries = "next" => p <= x.from + CheckpointEvery)}

\* What two reports both support. Digests of requests alone do not tell what is below them: two lists can only be
\* compared from a boundary that both carry. Chained digests exist at all positions.
Agreed(x, y) ==
    LET positions == {p \in 0..Len(x.log) : x.from <= p /\ y.from <= p /\ p <= Len(y.log)}
        comparable(p) == Boundaries = "all" \/ \E b \in Listed(x) \cap Listed(y) : b <= p
    IN  {Prefix(x.log, p) : p \in {q \in positions : Prefix(x.log, q) = Prefix(y.log, q) /\ comparable(q)}}

\* The rule of the paper: above a common boundary, f + 1 votes for a request decide its position; cut at a duplicate.
RECURSIVE Extend(_, _, _)
Extend(h, start, three) ==
    LET next == Len(h) + 1
        votesFor(q) == Cardinality({n \in 1..3 :
            three[n].from < next /\ next <= Len(three[n].log) /\ three[n].log[next] = q})
        winners == {q \in Requests : votesFor(q) >= 2}
        seen == {h[n] : n \in start+1..Len(h)}
    IN  IF winners \subseteq seen THEN h
        ELSE Extend(Append(h, CHOOSE q \in winners : TRUE), start, three)

\* The history that three ABORTs prove, as a set: it is empty if they prove none.
Extracted(x, y, z) ==
    LET all == Agreed(x, y) \cup Agreed(x, z) \cup Agreed(y, z)
        atBoundaries == {h \in all : IsBoundary(Len(h))}
    IN  IF Extraction = "prefix"
        THEN IF all = {} THEN {} ELSE {Longest(all)}
        ELSE IF atBoundaries = {} THEN {}
        ELSE LET h == Longest(atBoundaries) IN {Extend(h, Len(h), <<x, y, z>>)}

\* What two honest reports may lead to, whatever the liar adds. TLC computes this table once.
Forged == TLCEval([x \in HonestReports |-> [y \in HonestReports |-> {Extracted(x, y, z) : z \in AnyReport}]])

\* All choices of 2f + 1 ABORTs out of those that exist or that the liar may sign. Backup needs f + 1 equal ABORTs: one
\* of a correct replica, and the liar's.
Outcomes(stages, logs, froms) ==
    LET stopped == {r \in Correct : stages[r] \in {"stopped", "mute"}}
        report(r) == [from |-> froms[r], log |-> logs[r]]
        forged == UNION {Forged[report(pair[1])][report(pair[2])] :
            pair \in {p \in Pairs : p[1] \in stopped /\ p[2] \in stopped}}
        honest == {Extracted(report(InOrder[1]), report(InOrder[2]), report(InOrder[3]))}
    IN  CASE Protocol = "backup" -> {{logs[r]} : r \in stopped}
          [] stopped = Correct -> forged \cup honest
          [] OTHER -> forged

AbortHistories == UNION outcomes

-------------------------------------------------------------------------------
(* Answers and commits. A client commits as soon as it could: the variable     *)
(* `commits` follows from what the replicas have said.                         *)

\* Chain with f = 1: whose answers a client compares, whose authenticators a replica checks, and who hands it requests.
Last == {r2, r3}
Predecessors(r) == CASE r = r0 -> {} [] r = r1 -> {r0} [] r = r2 -> {r0, r1} [] r = r3 -> {r1, r2}
DirectPredecessor(r) == CASE r = r1 -> r0 [] r = r2 -> r1 [] r = r3 -> r2
Before(r) == CASE r = r0 -> {} [] r = r1 -> {r0} [] r = r2 -> {r0, r1} [] r = r3 -> {r0, r1, r2}

Answer(r, q, logs, bases, states) ==
    LET position == Position(logs[r], q)
        length == IF AnswerAfterInit /\ position < bases[r] THEN bases[r] ELSE position
    IN  [request |-> q, history |-> Prefix(logs[r], length), reply |-> Prefix(states[r], Position(states[r], q))]

\* Everything that r has answered.
Answers(r, stages, logs, bases, states) ==
    IF stages[r] \notin {"on", "stopped"} THEN {}
    ELSE {Answer(r, q, logs, bases, states) : q \in Elements(logs[r])}

\* In Chain, a request of the init history is answered only if all before r say the same of it.
IsAnsweredInChain(r, answer, stages, logs, bases, states) ==
    \/ ~AuthenticatedAnswers
    \/ Position(logs[r], answer.request) > bases[r]
    \/ \A p \in Before(r) \cap Correct : \E other \in Answers(p, stages, logs, bases, states) :
        /\ other.request = answer.request /\ other.history = answer.history
        /\ Position(logs[p], answer.request) <= bases[p]

\* Whose answers a client compares: in Quorum those of all, in Chain those of the last two; in Backup f + 1 equal ones
\* suffice, one correct replica's and the liar's.
Committed(stages, logs, bases, states) ==
    LET answers(r) == Answers(r, stages, logs, bases, states)
        equal(replicas) == LET one == CHOOSE r \in replicas : TRUE
                           IN  {a \in answers(one) : \A r \in replicas \ {one} : a \in answers(r)}
    IN  CASE Protocol = "quorum" -> equal(Correct)
          [] Protocol = "chain" -> {a \in equal(Last \cap Correct) : \A r \in Last \cap Correct :
                IsAnsweredInChain(r, a, stages, logs, bases, states)}
          [] Protocol = "backup" -> UNION {answers(r) : r \in Correct}

UpdateCommits == commits' = commits \cup Committed(stage', log', base', applied')

UpdateOutcomes == outcomes' = Outcomes(stage', log', from')

-------------------------------------------------------------------------------
Init ==
    /\ instance = 1 /\ inits = {} /\ earlier = {} /\ commits = {} /\ outcomes = {} /\ votes = {}
    /\ stage = [r \in Correct |-> "on"]
    /\ log = [r \in Correct |-> <<>>] /\ anchor = log /\ applied = log
    /\ base = [r \in Correct |-> 0] /\ from = base

\* Whether r may log q at all.
IsFresh(r, q) == q \notin Elements(IF ReplayFilter THEN log[r] ELSE SubSeq(log[r], base[r] + 1, Len(log[r])))

DoLog(r, q) ==
    /\ stage[r] = "on" /\ Len(log[r]) < LengthMax /\ IsFresh(r, q)
    /\ log' = [log EXCEPT ![r] = Append(@, q)]
    /\ applied' = [applied EXCEPT ![r] = Append(@, q)]
    /\ UNCHANGED <<instance, inits, earlier, base, anchor, votes>>

\* Quorum logs what arrives, in any order: clients and the network are free.
LogInQuorum(r, q) == Protocol = "quorum" /\ DoLog(r, q) /\ UNCHANGED <<outcomes, stage, from>> /\ UpdateCommits

\* Chain: the head logs what arrives; others what their predecessors authenticate. The liar authenticates anything.
Authenticates(p, r, q) ==
    LET number == Len(log[r]) - base[r] + 1  \* The sequence number of the paper begins after the init history.
    IN  IF HistoryBoundAuthenticators
        THEN stage[p] \in {"on", "stopped"} /\ Len(log[r]) >= base[p] /\ IsPrefix(Append(log[r], q), log[p])
        ELSE base[p] + number <= Len(log[p]) /\ log[p][base[p] + number] = q

LogInChain(r, q) ==
    /\ Protocol = "chain"
    /\ \A p \in Predecessors(r) \cap Correct : Authenticates(p, r, q)
    /\ DoLog(r, q) /\ UNCHANGED <<outcomes, stage, from>> /\ UpdateCommits

\* Backup logs what its total order delivers: the logs of correct replicas are prefixes of one sequence. If it acts on
\* tentative deliveries, one replica may have executed what a view change then orders differently.
IsOrdered(r, h) == \A s \in Correct \ {r} : stage[s] = "new" \/ Comparable(h, log[s])

IsTentative(r, h) ==
    ~FinalDelivery /\ \A s, t \in Correct \ {r} : stage[s] = "new" \/ stage[t] = "new" \/ Comparable(log[s], log[t])

LogInBackup(r, q) ==
    LET count == Len(log[r]) + 1 - base[r]
    IN  /\ Protocol = "backup"
        /\ IsOrdered(r, Append(log[r], q)) \/ IsTentative(r, Append(log[r], q))
        /\ DoLog(r, q)
        /\ \E ends \in BOOLEAN :
            /\ AgreedK => (ends <=> count = OrderedMax)
            /\ count = OrderedMax => ends
            /\ stage' = [stage EXCEPT ![r] = IF ends THEN "stopped" ELSE @]
        /\ UNCHANGED from /\ UpdateCommits /\ UpdateOutcomes

\* An ABORT lists from the anchor up; if that lies beyond the log (never, with all repairs), from the log's end.
FirstListed(ownAnchor, ownLog) == IF Len(ownAnchor) <= Len(ownLog) THEN Len(ownAnchor) ELSE Len(ownLog)

\* A PANIC arrives: anybody may send one. From here on r's ABORT is what it is.
Stop(r) ==
    /\ Protocol # "backup" /\ stage[r] = "on"
    /\ stage' = [stage EXCEPT ![r] = "stopped"]
    /\ from' = [from EXCEPT ![r] = FirstListed(anchor[r], log[r])]
    /\ UNCHANGED <<instance, inits, earlier, commits, log, base, anchor, applied, votes>>
    /\ UpdateOutcomes

\* A checkpoint is stable at r once all others have sent an equal CHECKPOINT. The liar sends its own to whom it likes.
HasVoted(s, h) ==
    \/ stage[s] # "new" /\ IsPrefix(h, log[s])
    \/ ~InstanceBoundCheckpoints /\ <<s, h>> \in votes

Checkpoint(r) ==
    /\ Protocol # "backup" /\ stage[r] = "on"
    /\ \E p \in Len(anchor[r])+1..Len(log[r]) :
        /\ IsBoundary(p)
        /\ \A s \in Correct \ {r} : HasVoted(s, Prefix(log[r], p))
        /\ anchor' = [anchor EXCEPT ![r] = Prefix(log[r], p)]
    /\ UNCHANGED <<instance, inits, earlier, commits, outcomes, stage, log, base, from, applied, votes>>

-------------------------------------------------------------------------------
(* The switch. What happens in an instance never depends on later ones, so     *)
(* every run can be reordered into one in which nothing more happens in an     *)
(* instance once its successor has begun; of it only the abort histories,      *)
(* the commits and the anchors are then of interest. This loses no reachable   *)
(* state: a replica that is late is "new", and may stay so for ever.           *)

Maximal(S) == {h \in S : \A g \in S : IsPrefix(h, g) => g = h}

Switch ==
    /\ instance < Len(Schedule) /\ AbortHistories # {}
    /\ instance' = instance + 1
    /\ inits' = IF InstanceBoundAborts THEN AbortHistories ELSE AbortHistories \cup inits
    /\ earlier' = Maximal(earlier \cup {c.history : c \in commits})
    /\ commits' = {} /\ outcomes' = {}
    /\ stage' = [r \in Correct |-> "new"]
    /\ log' = [r \in Correct |-> <<>>]
    /\ base' = [r \in Correct |-> 0] /\ from' = base'
    \* With a rollback, what was applied is of no interest any more.
    /\ applied' = IF RollbackOnInit THEN log' ELSE applied
    /\ votes' = IF InstanceBoundCheckpoints THEN {}
                ELSE votes \cup {<<r, Prefix(log[r], p)>> : <<r, p>> \in
                    {<<s, n>> \in Correct \X (1..LengthMax) : n <= Len(log[s]) /\ IsBoundary(n)}}
    /\ UNCHANGED anchor

InitHistory(r) == Prefix(log[r], base[r])

MayInitialise(r) ==
    \/ stage[r] = "new"
    \/ ~InitFlag /\ stage[r] = "on" /\ log[r] = anchor[r]

\* Whence r may take an init history when it begins to work: from any client; in Chain, from its direct predecessor;
\* in Backup, from the first initialisation in the total order.
IsOffered(r, h) ==
    CASE Protocol = "quorum" -> TRUE
      [] Protocol = "chain" -> IF r = r0 \/ DirectPredecessor(r) = Liar THEN TRUE
            ELSE LET p == DirectPredecessor(r) IN stage[p] \in {"on", "stopped"} /\ InitHistory(p) = h
      [] Protocol = "backup" -> \A s \in Correct : stage[s] = "new" \/ InitHistory(s) = h

NotIn(h, g) == SelectSeq(h, LAMBDA q : q \notin Elements(g))

NewAnchor(r, h) ==
    CASE Schedule[instance - 1] = "backup" -> h
      [] ~AnchorRule -> Prefix(h, Len(h) - (Len(h) % CheckpointEvery))
      [] OTHER -> anchor[r]

Begin(r, h, next) ==
    /\ stage' = [stage EXCEPT ![r] = next]
    /\ log' = [log EXCEPT ![r] = h]
    /\ base' = [base EXCEPT ![r] = Len(h)]
    /\ anchor' = [anchor EXCEPT ![r] = NewAnchor(r, h)]
    /\ from' = [from EXCEPT ![r] = IF next = "mute" THEN FirstListed(anchor'[r], h) ELSE @]
    /\ applied' = [applied EXCEPT ![r] = IF RollbackOnInit THEN h ELSE @ \o NotIn(h, @)]
    /\ UNCHANGED <<instance, inits, earlier, votes>>
    /\ IF next = "mute" THEN UpdateOutcomes /\ UNCHANGED commits ELSE UpdateCommits /\ UNCHANGED outcomes

Initialise(r) == \E h \in inits : MayInitialise(r) /\ IsOffered(r, h) /\ Begin(r, h, "on")

\* A PANIC with an init history reaches a replica of Chain that has none. Elsewhere this is Initialise, then Stop.
InitialiseAndStop(r) == Protocol = "chain" /\ stage[r] = "new" /\ \E h \in inits : Begin(r, h, "mute")

\* A replica restarts without what it knew.
Forget(r) ==
    /\ ~Remembers /\ stage[r] = "on"
    /\ stage' = [stage EXCEPT ![r] = IF instance = 1 THEN "on" ELSE "new"]
    /\ log' = [log EXCEPT ![r] = <<>>] /\ applied' = [applied EXCEPT ![r] = <<>>]
    /\ anchor' = [anchor EXCEPT ![r] = <<>>] /\ base' = [base EXCEPT ![r] = 0]
    /\ UNCHANGED <<instance, inits, earlier, commits, outcomes, from, votes>>

Next ==
    \/ \E r \in Correct : Stop(r) \/ Checkpoint(r) \/ Initialise(r) \/ InitialiseAndStop(r) \/ Forget(r)
    \/ \E r \in Correct, q \in Requests : LogInQuorum(r, q) \/ LogInChain(r, q) \/ LogInBackup(r, q)
    \/ Switch

Spec == Init /\ [][Next]_variables

-------------------------------------------------------------------------------
(* What must hold.                                                             *)

CommitHistories == {c.history : c \in commits}
Histories == CommitHistories \cup AbortHistories

\* Only what a correct replica has logged counts as invoked: the strongest reading, as the liar logs nothing.
Invoked == UNION ({Elements(log[r]) : r \in Correct} \cup {Elements(h) : h \in inits})

Validity == \A h \in Histories : IsValid(h, Invoked)
CommitOrder == IsCommitOrdered(CommitHistories)
AbortOrder == IsAbortOrdered(CommitHistories, AbortHistories)
InitOrder == IsInitOrdered(inits, Histories)

\* The composition theorem: what any instance commits is in all that later ones commit or abort with.
Composition == \A e \in earlier, h \in Histories : IsPrefix(e, h)

\* A reply is the result of the request at its place in the history.
Replies == \A c \in commits : c.reply = Prefix(c.history, Position(c.history, c.request))

\* No correct replica is ever asked to roll back behind its anchor.
Anchors == \A r \in Correct, h \in AbortHistories : IsPrefix(anchor[r], h)

\* Whatever the liar reports, 2f + 1 ABORTs prove some history. Without this a client could not go on.
Extractable == {} \notin outcomes

-------------------------------------------------------------------------------
(* Probes and not properties: TLC must violate them, or the model could do     *)
(* nothing worth checking.                                                     *)

NeverCommitsLast == ~(instance = Len(Schedule) /\ commits # {})
OneInitHistory == Cardinality(inits) <= 1

\* Requests are alike, and so are replicas where no Chain puts them in order.
Alike == Permutations(Requests)
AllAlike == Alike \cup Permutations(Correct)
================================================================================
