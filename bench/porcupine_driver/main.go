// Porcupine behind standard input, for `python -m bench.linearizable --driver PATH`.
//
// In: any number of histories of one register each, every number separated by white space:
//
//	history OPERATIONS TIMEOUT_MS
//	INVOKE COMPLETE KIND OLD NEW        (one line for each operation)
//
// INVOKE and COMPLETE are numbers of events, COMPLETE is -1 where no answer ever came; KIND is 0 for a read of OLD, 1 for a
// compare-and-set refused since the value was not OLD, 2 for a write of NEW, 3 for a compare-and-set from OLD to NEW. The
// register holds 0 at first.
//
// Out: for each history a line with the answer (yes, no or unknown) and the nanoseconds that Porcupine took; reading is
// not counted, nor is making its events. An operation without an answer returns at the end, as Porcupine's users do it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	read = iota
	refused
	write
	swap
)

type request struct {
	kind, old, new int
	answered       bool
}

var register = porcupine.Model{
	Init: func() interface{} { return 0 },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		asked, value := input.(request), state.(int)
		switch asked.kind {
		case read:
			return value == asked.old, state
		case refused:
			return value != asked.old, state
		case write:
			return true, asked.new
		}
		if value == asked.old {
			return true, asked.new
		}
		return !asked.answered, state
	},
	Hash: func(state interface{}) uint64 { return uint64(state.(int)) * 0x9E3779B97F4A7C15 },
}

var answers = map[porcupine.CheckResult]string{
	porcupine.Ok: "yes", porcupine.Illegal: "no", porcupine.Unknown: "unknown",
}

type moment struct {
	at    int
	event porcupine.Event
}

// history makes events of `count` operations, in their order.
func history(number func() int, count int) []porcupine.Event {
	var moments, late []moment
	for id := 0; id < count; id++ {
		invoke, complete := number(), number()
		asked := request{kind: number(), old: number(), new: number(), answered: complete >= 0}
		call := porcupine.Event{Kind: porcupine.CallEvent, Value: asked, Id: id}
		answer := porcupine.Event{Kind: porcupine.ReturnEvent, Value: nil, Id: id}
		moments = append(moments, moment{invoke, call})
		if complete >= 0 {
			moments = append(moments, moment{complete, answer})
		} else {
			late = append(late, moment{0, answer})
		}
	}
	sort.Slice(moments, func(i, j int) bool { return moments[i].at < moments[j].at })
	var events []porcupine.Event
	for _, each := range append(moments, late...) {
		events = append(events, each.event)
	}
	return events
}

func main() {
	words := bufio.NewScanner(os.Stdin)
	words.Split(bufio.ScanWords)
	number := func() int {
		if !words.Scan() {
			fmt.Fprintln(os.Stderr, "expected a number, came the end of the input")
			os.Exit(1)
		}
		value, err := strconv.Atoi(words.Text())
		if err != nil {
			fmt.Fprintf(os.Stderr, "expected a number, came %q\n", words.Text())
			os.Exit(1)
		}
		return value
	}
	for words.Scan() {
		if words.Text() != "history" {
			fmt.Fprintf(os.Stderr, "expected the word history, came %q\n", words.Text())
			os.Exit(1)
		}
		count := number()
		timeout := time.Duration(number()) * time.Millisecond
		events := history(number, count)
		began := time.Now()
		result := porcupine.CheckEventsTimeout(register, events, timeout)
		fmt.Println(answers[result], time.Since(began).Nanoseconds())
	}
}
