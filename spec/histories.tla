------------------------------- MODULE histories -------------------------------
(* Histories, and what the paper demands of them. Both other modules speak in  *)
(* these words, so that a property means the same in the specification of      *)
(* Abstract and in the model of the protocols.                                 *)
(*                                                                             *)
(* A history is a sequence of requests. A history digest is a hash chain, and  *)
(* the model has no collisions: the digest at position p simply *is* the       *)
(* prefix of length p.                                                         *)
EXTENDS Naturals, Sequences, FiniteSets

IsPrefix(g, h) == Len(g) <= Len(h) /\ \A n \in 1..Len(g) : g[n] = h[n]

Comparable(g, h) == IsPrefix(g, h) \/ IsPrefix(h, g)

Prefix(h, length) == SubSeq(h, 1, length)

Elements(h) == {h[n] : n \in 1..Len(h)}

HasDuplicates(h) == Cardinality(Elements(h)) # Len(h)

\* The last position of a request that h contains.
Position(h, request) == CHOOSE n \in 1..Len(h) : h[n] = request /\ \A m \in n+1..Len(h) : h[m] # request

\* Every sequence of at most `length` elements of S.
SequencesUpTo(S, length) == UNION {[1..n -> S] : n \in 0..length}

Longest(S) == CHOOSE h \in S : \A g \in S : Len(g) <= Len(h)

\* The longest common prefix of a set that is not empty.
CommonPrefix(S) ==
    LET h == CHOOSE g \in S : TRUE
    IN  Longest({Prefix(h, n) : n \in {m \in 0..Len(h) : \A g \in S : IsPrefix(Prefix(h, m), g)}})

-------------------------------------------------------------------------------
(* The properties of section 3 of the paper. `commits` and `aborts` are the    *)
(* commit and abort histories of one instance, `inits` its valid init          *)
(* histories: the abort histories of the instance before it.                   *)

\* No request twice, and none that nobody invoked (here or in an init history).
IsValid(h, invoked) == ~HasDuplicates(h) /\ Elements(h) \subseteq invoked

IsCommitOrdered(commits) == \A g, h \in commits : Comparable(g, h)

IsAbortOrdered(commits, aborts) == \A g \in commits, h \in aborts : IsPrefix(g, h)

IsInitOrdered(inits, histories) ==
    inits # {} => LET common == CommonPrefix(inits) IN \A h \in histories : IsPrefix(common, h)
================================================================================
