package main

// ofTransaction is an operation on one transaction; what a client got no id of is not in the history.
func ofTransaction(s *State, o *Operation) []*State {
	if o.Kind == "open" {
		return open(s, o)
	}
	for i := range s.Transactions {
		if s.Transactions[i].ID == o.Txn {
			return onTransaction(s, o, i)
		}
	}
	switch o.Kind {
	case "state", "ping":
		return when(s, o.Status == "UNKNOWN")
	}
	return when(s, o.Status == "FAILURE")
}

func open(s *State, o *Operation) []*State {
	switch {
	case !s.Exists || s.pends("create"):
		return when(s, o.Status == "NOT_FOUND")
	case s.Sealed || s.pends("seal"):
		return when(s, o.Status == "STREAM_SEALED")
	case o.Status != "OK" || o.Epoch != s.current().Reference:
		return nil
	}
	segments := make([]Segment, 0, len(o.Segments))
	for _, segment := range s.Epochs[o.Epoch].Segments {
		segments = append(segments, segment.in(o.Epoch))
	}
	opened := s.copy()
	opened.Transactions = append(opened.Transactions, Transaction{ID: o.Txn, Epoch: o.Epoch, Phase: Open})
	return when(opened, sameSegments(segments, o.Segments))
}

// A stream that is being sealed aborts what is open, one transaction after the other.
func onTransaction(s *State, o *Operation, index int) []*State {
	possible := inPhase(s, o, index)
	if s.pends("seal") && s.Transactions[index].Phase == Open {
		possible = append(possible, inPhase(s.to(index, Aborting), o, index)...)
	}
	return possible
}

func (s *State) to(index int, phase Phase) *State {
	next := s.copy()
	transaction := &next.Transactions[index]
	transaction.Phase = phase
	if phase == Ending {
		next.Commits++
		transaction.CommitTurn = next.Commits
		next.noteMergeable()
	}
	return next
}

func inPhase(s *State, o *Operation, index int) []*State {
	phase := s.Transactions[index].Phase
	switch o.Kind {
	case "ping":
		return when(s, o.Status == map[Phase]string{
			Open: "OK", Ending: "COMMITTED", Committed: "COMMITTED", Aborting: "ABORTED", Aborted: "ABORTED",
		}[phase])
	case "state":
		return observe(s, o, index)
	case "commit":
		if phase == Open {
			return when(s.to(index, Ending), o.succeeds("SUCCESS"))
		}
		return when(s, o.Status == answer(phase == Ending || phase == Committed))
	}
	if phase == Open {
		return when(s.to(index, Aborting), o.succeeds("SUCCESS"))
	}
	return when(s, o.Status == answer(phase == Aborting || phase == Aborted))
}

func answer(done bool) string {
	if done {
		return "SUCCESS"
	}
	return "FAILURE"
}

// observe: who sees an end makes it known that it has come.
func observe(s *State, o *Operation, index int) []*State {
	transaction := s.Transactions[index]
	switch {
	case o.Status == string(transaction.Phase):
		return states(s)
	case transaction.Phase == Ending && o.Status == "COMMITTING":
		return when(s, !transaction.HasRolled)
	case transaction.Phase == Aborting && o.Status == "ABORTED":
		return states(s.to(index, Aborted))
	case transaction.Phase != Ending || o.Status != "COMMITTED":
		return nil
	}
	possible := []*State{}
	for _, later := range s.later() {
		if later.Transactions[index].Mergeable {
			possible = append(possible, later.to(index, Committed))
		}
	}
	return possible
}
