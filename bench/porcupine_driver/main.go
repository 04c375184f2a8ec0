// Checks registers with Porcupine, so that bench/linearizable.py can compare: histories on standard input, a line of
// "verdict nanoseconds" for each on standard output.
//
// A history is a line "history <calls> <timeout in ms>" and a line per call: invocation and return (ranks; -1 for a call
// that never returned), kind (0 read, 1 refused compare, 2 write, 3 compare-and-set), old and new value.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type call struct{ kind, old, new int }

var register = porcupine.Model{
	Init: func() interface{} { return 0 },
	Hash: func(state interface{}) uint64 { return uint64(state.(int)) * 0x9E3779B97F4A7C15 },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		c, value := input.(call), state.(int)
		switch c.kind {
		case 0:
			return value == c.old, state
		case 1:
			return value != c.old, state
		case 2:
			return true, c.new
		}
		return value == c.old, c.new
	},
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		var count, timeout int
		if _, err := fmt.Fscanf(in, "history %d %d\n", &count, &timeout); err != nil {
			return
		}
		operations := make([]porcupine.Operation, count)
		for i := range operations {
			var c call
			var invoke, complete int64
			fmt.Fscanf(in, "%d %d %d %d %d\n", &invoke, &complete, &c.kind, &c.old, &c.new)
			if complete < 0 {
				complete = math.MaxInt64
			}
			operations[i] = porcupine.Operation{ClientId: i, Input: c, Call: invoke, Output: nil, Return: complete}
		}
		began := time.Now()
		result := porcupine.CheckOperationsTimeout(register, operations, time.Duration(timeout)*time.Millisecond)
		fmt.Println(result, time.Since(began).Nanoseconds())
	}
}
