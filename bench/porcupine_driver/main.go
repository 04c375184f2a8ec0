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
// And histories of a key-value store (get, put, append), which Porcupine takes apart by its keys:
//
//	kv OPERATIONS TIMEOUT_MS
//	INVOKE COMPLETE KIND KEY TEXT       (KIND is 0 for a get of TEXT, 1 for a put, 2 for an append; TEXT in hex behind an x)
//
// Out: for each history a line with the answer (yes, no or unknown), and the nanoseconds that Porcupine took by the clock
// and of all cores; reading is not counted, nor is making its events. An operation without an answer returns at the end,
// as Porcupine's users do it.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"sort"
	"strconv"
	"syscall"
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

type keyed struct {
	kind      int
	key, text string
}

const (
	get = iota
	put
	push
)

var store = porcupine.Model{
	PartitionEvent: func(events []porcupine.Event) [][]porcupine.Event {
		parts := map[string][]porcupine.Event{}
		keys := map[int]string{}
		for _, event := range events {
			if event.Kind == porcupine.CallEvent {
				keys[event.Id] = event.Value.(keyed).key
			}
			parts[keys[event.Id]] = append(parts[keys[event.Id]], event)
		}
		var all [][]porcupine.Event
		for _, part := range parts {
			all = append(all, part)
		}
		return all
	},
	Init: func() interface{} { return "" },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		asked, text := input.(keyed), state.(string)
		switch asked.kind {
		case get:
			return text == asked.text, state
		case put:
			return true, asked.text
		}
		return true, text + asked.text
	},
}

var answers = map[porcupine.CheckResult]string{
	porcupine.Ok: "yes", porcupine.Illegal: "no", porcupine.Unknown: "unknown",
}

type moment struct {
	at    int
	event porcupine.Event
}

// history makes events of `count` operations, in their order; `read` reads what was asked.
func history(number func() int, count int, read func(answered bool) interface{}) []porcupine.Event {
	var moments, late []moment
	for id := 0; id < count; id++ {
		invoke, complete := number(), number()
		asked := read(complete >= 0)
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

// spent gives the nanoseconds that this process has taken of all cores.
func spent() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
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
	text := func() string {
		words.Scan()
		plain, err := hex.DecodeString(words.Text()[1:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "expected a text in hex, came %q\n", words.Text())
			os.Exit(1)
		}
		return string(plain)
	}
	of_register := func(answered bool) interface{} {
		return request{kind: number(), old: number(), new: number(), answered: answered}
	}
	of_store := func(bool) interface{} {
		return keyed{kind: number(), key: strconv.Itoa(number()), text: text()}
	}
	for words.Scan() {
		model, read := register, of_register
		switch words.Text() {
		case "history":
		case "kv":
			model, read = store, of_store
		default:
			fmt.Fprintf(os.Stderr, "expected the word history or kv, came %q\n", words.Text())
			os.Exit(1)
		}
		count := number()
		timeout := time.Duration(number()) * time.Millisecond
		events := history(number, count, read)
		began, before := time.Now(), spent()
		result := porcupine.CheckEventsTimeout(model, events, timeout)
		fmt.Println(answers[result], time.Since(began).Nanoseconds(), spent()-before)
	}
}
