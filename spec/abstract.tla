-------------------------------- MODULE abstract --------------------------------
(* Abstract, section 3 of the paper, and its composition theorem.              *)
(*                                                                             *)
(* Each instance may commit and abort with whatever histories its properties   *)
(* allow, and with nothing else: no replicas, no messages. What comes out is   *)
(* that the whole composition has the same properties, which is why a protocol *)
(* may be proved, and built, on its own. Without Init Order, or any other of   *)
(* the four, it does not.                                                      *)
EXTENDS histories, TLC

CONSTANTS
    Requests,       \* What clients may invoke.
    LengthMax,      \* The longest history.
    InstanceMax,    \* How many instances follow each other.
    \* What every instance promises.
    KeepsValidity,
    KeepsCommitOrder,
    KeepsAbortOrder,
    KeepsInitOrder

VARIABLES
    invoked,        \* The requests that clients have invoked.
    commits,        \* commits[i]: the commit histories of instance i.
    aborts          \* aborts[i]: its abort histories.

variables == <<invoked, commits, aborts>>

Instances == 1..InstanceMax
AllHistories == SequencesUpTo(Requests, LengthMax)

\* The valid init histories of an instance are what the one before it aborted with.
Inits(i) == IF i = 1 THEN {} ELSE aborts[i - 1]
IsInvoked(i) == i = 1 \/ Inits(i) # {}

\* What an instance may add to its histories.
Allows(i, h) ==
    /\ IsInvoked(i)
    /\ KeepsValidity => IsValid(h, invoked \cup UNION {Elements(g) : g \in Inits(i)})
    /\ KeepsInitOrder => IsInitOrdered(Inits(i), {h})

Invoke(q) == q \notin invoked /\ invoked' = invoked \cup {q} /\ UNCHANGED <<commits, aborts>>

Commit(i, h) ==
    /\ h # <<>> /\ h \notin commits[i] /\ Allows(i, h)
    /\ KeepsCommitOrder => IsCommitOrdered(commits[i] \cup {h})
    /\ KeepsAbortOrder => IsAbortOrdered({h}, aborts[i])
    /\ commits' = [commits EXCEPT ![i] = @ \cup {h}]
    /\ UNCHANGED <<invoked, aborts>>

Abort(i, h) ==
    /\ h \notin aborts[i] /\ Allows(i, h)
    /\ KeepsAbortOrder => IsAbortOrdered(commits[i], {h})
    /\ aborts' = [aborts EXCEPT ![i] = @ \cup {h}]
    /\ UNCHANGED <<invoked, commits>>

Init ==
    /\ invoked = {}
    /\ commits = [i \in Instances |-> {}]
    /\ aborts = [i \in Instances |-> {}]

Next ==
    \/ \E q \in Requests : Invoke(q)
    \/ \E i \in Instances, h \in AllHistories : Commit(i, h) \/ Abort(i, h)

Spec == Init /\ [][Next]_variables

-------------------------------------------------------------------------------
(* The composition of instances 1 to i, seen as one instance.                  *)

Committed(i) == UNION {commits[j] : j \in 1..i}

Validity == \A i \in Instances : \A h \in commits[i] \cup aborts[i] : IsValid(h, invoked)
CommitOrder == IsCommitOrdered(Committed(InstanceMax))
AbortOrder == \A i \in Instances : IsAbortOrdered(Committed(i), aborts[i])

-------------------------------------------------------------------------------
(* A probe and not a property: TLC must violate it, or the model could do      *)
(* nothing worth checking.                                                     *)

NeverCommitsLast == commits[InstanceMax] = {}

Alike == Permutations(Requests)
================================================================================
