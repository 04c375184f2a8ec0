// Asks Porcupine whether a history of registers is linearizable: `porcupine-check --model cas-register history.jsonl`.
//
// In: the record of this project, one event a line, in order; a completion belongs to the open invocation of its process.
//
//	{"type":"invoke","process":0,"f":"write","key":"x","value":1}
//	{"type":"ok","process":0,"f":"write","key":"x","value":1}
//
// f is read, write or cas (value [old,new]). A register begins with null. An operation of type info may have happened at
// any time, or never; a cas of type fail saw another value than the expected one. Out: true, false or unknown, for `./qsync check --second-opinion porcupine:./porcupine-check`.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type line struct {
	Type, F, Key string
	Process      int
	Value        json.RawMessage
}

func text(value json.RawMessage) string {
	if len(value) == 0 {
		return "null"
	}
	return string(value)
}

var register = porcupine.Model{
	PartitionEvent: func(events []porcupine.Event) [][]porcupine.Event {
		keys, parts := map[int]string{}, map[string][]porcupine.Event{}
		for _, event := range events {
			if event.Kind == porcupine.CallEvent {
				keys[event.Id] = event.Value.(line).Key
			}
			parts[keys[event.Id]] = append(parts[keys[event.Id]], event)
		}
		all := [][]porcupine.Event{}
		for _, part := range parts {
			all = append(all, part)
		}
		return all
	},
	Init: func() interface{} { return "null" },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		asked, answer := input.(line), output.(line)
		switch asked.F {
		case "read":
			return answer.Type != "ok" || text(answer.Value) == state, state
		case "write":
			return true, text(asked.Value)
		}
		var pair [2]json.RawMessage
		if err := json.Unmarshal(asked.Value, &pair); err != nil {
			panic(fmt.Sprintf("expected read, write, or cas of [old,new], got %s %s", asked.F, asked.Value))
		}
		if text(pair[0]) != state {
			return answer.Type != "ok", state
		}
		return answer.Type != "fail", text(pair[1])
	},
}

func main() {
	model := flag.String("model", "cas-register", "register or cas-register")
	timeout := flag.Duration("timeout", 10*time.Minute, "then the answer is unknown")
	flag.Parse()
	file, err := os.Open(flag.Arg(0))
	if err != nil || flag.NArg() != 1 || (*model != "register" && *model != "cas-register") {
		fmt.Fprintln(os.Stderr, "usage: porcupine-check --model register|cas-register HISTORY.jsonl", err)
		os.Exit(2)
	}
	open, number, events := map[int]int{}, 0, []porcupine.Event{}
	for lines := json.NewDecoder(bufio.NewReader(file)); lines.More(); {
		var each line
		if err := lines.Decode(&each); err != nil {
			fmt.Fprintln(os.Stderr, "no history of this project:", err)
			os.Exit(2)
		}
		if each.Type == "invoke" {
			open[each.Process] = number
			events = append(events, porcupine.Event{Kind: porcupine.CallEvent, Value: each, Id: number})
			number++
		} else if each.Type != "info" {
			events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Value: each, Id: open[each.Process]})
			delete(open, each.Process)
		}
	}
	for _, id := range open { // no answer: it returns after all others
		events = append(events, porcupine.Event{Kind: porcupine.ReturnEvent, Value: line{}, Id: id})
	}
	answers := map[porcupine.CheckResult]string{porcupine.Ok: "true", porcupine.Illegal: "false"}
	if answer, is := answers[porcupine.CheckEventsTimeout(register, events, *timeout)]; is {
		fmt.Println(answer)
	} else {
		fmt.Println("unknown")
	}
}
