// The judge: reads histories of what clients did to streams, and decides whether each stream was linearizable.
//
//	judge [-timeout 60s] [-pictures FOLDER] HISTORY…
//
// Exit code 0: all were; 1: one was not, or could not be read; 2: one was too long to be judged in time.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const shown = 12

func model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{&State{}} },
		Step: func(state, input, _ interface{}) []interface{} {
			next := []interface{}{}
			for _, one := range step(state.(*State), input.(*Operation)) {
				next = append(next, one)
			}
			return next
		},
		Equal: func(one, other interface{}) bool {
			return one.(*State).described() == other.(*State).described()
		},
		Hash:              func(state interface{}) uint64 { return state.(*State).hash() },
		DescribeOperation: func(input, _ interface{}) string { return input.(*Operation).String() },
		DescribeState:     func(state interface{}) string { return state.(*State).described() },
	}
	return nondeterministic.ToModel()
}

// judged are the operations as porcupine has them: a change that was answered is two, of the same time.
func judged(operations []*Operation) []porcupine.Operation {
	all := []porcupine.Operation{}
	add := func(o *Operation, of *Operation) {
		all = append(all, porcupine.Operation{ClientId: of.Client, Input: o, Call: of.Call, Return: of.end()})
	}
	for _, operation := range operations {
		add(operation, operation)
		switch operation.Kind {
		case "create", "update", "seal":
			if operation.Status == "SUCCESS" {
				add(&Operation{settles: operation}, operation)
			}
		}
	}
	return all
}

func check(operations []*Operation, limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(), judged(operations), limit)
}

// shortest is the shortest beginning of a history that is not linearizable: what has just returned makes it so.
func shortest(operations []*Operation, limit time.Duration) []*Operation {
	times := returns(operations)
	first := sort.Search(len(times), func(i int) bool {
		return check(until(operations, times[i]), limit) == porcupine.Illegal
	})
	if first == len(times) {
		return operations
	}
	return until(operations, times[first])
}

func describe(stream string, operations []*Operation, pictures string, limit time.Duration) {
	guilty := shortest(operations, limit)
	sort.Slice(guilty, func(i, j int) bool { return guilty[i].end() < guilty[j].end() })
	fmt.Printf("%s is not linearizable; the last operations, times in ms:\n", stream)
	began, answered := guilty[0].Call, 0
	for _, operation := range guilty {
		if !operation.isUnknown() {
			answered++
		}
	}
	for i, operation := range guilty {
		if i < answered-shown && !operation.isUnknown() {
			continue
		}
		end := "      …"
		if !operation.isUnknown() {
			end = fmt.Sprintf("%7.1f", float64(*operation.Return-began)/1e6)
		}
		fmt.Printf("  %7.1f %s  client %d at %s: %v\n",
			float64(operation.Call-began)/1e6, end, operation.Client, operation.Gateway, operation)
	}
	if pictures == "" {
		return
	}
	path := filepath.Join(pictures, strings.NewReplacer("/", "-").Replace(stream)+".html")
	_, info := porcupine.CheckOperationsVerbose(model(), judged(guilty), limit)
	if err := porcupine.VisualizePath(model(), info, path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println("  drawn in", path)
}

func main() {
	limit := flag.Duration("timeout", time.Minute, "for each stream")
	pictures := flag.String("pictures", "", "folder for drawings of what is not linearizable")
	flag.Parse()
	code, count, unknown, streams := 0, 0, 0, 0
	for _, path := range flag.Args() {
		file, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		histories, operations, err := read(file)
		file.Close()
		if err != nil {
			fmt.Fprintln(os.Stderr, path, err)
			os.Exit(1)
		}
		count += operations
		names := make([]string, 0, len(histories))
		for name, history := range histories {
			names = append(names, name)
			for _, operation := range history {
				if operation.isUnknown() {
					unknown++
				}
			}
		}
		sort.Strings(names)
		streams += len(names)
		for _, name := range names {
			switch check(histories[name], *limit) {
			case porcupine.Illegal:
				describe(name, histories[name], *pictures, *limit)
				code = 1
			case porcupine.Unknown:
				fmt.Printf("%s: %d operations, too many to be judged in %s\n", name, len(histories[name]), *limit)
				if code == 0 {
					code = 2
				}
			}
		}
	}
	verdict := map[int]string{0: "linearizable", 1: "NOT linearizable", 2: "undecided"}[code]
	fmt.Printf("%d operations on %d streams, %d of unknown end: %s\n", count, streams, unknown, verdict)
	os.Exit(code)
}
