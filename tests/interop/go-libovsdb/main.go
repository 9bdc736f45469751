// The peer: libovsdb as ovn-kubernetes uses it, driven by the suite beside it.
//
// Argument: the endpoint. Prints one line for each finding, "ok: ..." or "FAILED: ..."; exit status 1 when one failed.
// "RESTART" asks the suite to restart the server; it answers with a line when the server serves again.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/cache"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

const timeout = 60 * time.Second

var failures int

func check(holds bool, what string, detail ...any) bool {
	if holds {
		fmt.Println("ok:", what)
	} else {
		failures++
		fmt.Println("FAILED:", what, fmt.Sprint(detail...))
	}
	return holds
}

// must ends the program on an error that leaves nothing to go on with.
func must(what string, err error) {
	if err != nil {
		fmt.Println("FAILED:", what, err)
		os.Exit(1)
	}
}

// until polls the cache, which another goroutine fills, until the condition holds.
func until(what string, holds func() bool) bool {
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return check(true, what)
		}
	}
	return check(false, what, "timed out")
}

func connect(endpoint string) client.Client {
	tables, err := model.NewClientDBModel("inventory", map[string]model.Model{
		"Site": &Site{}, "Rack": &Rack{}, "Device": &Device{}, "Note": &Note{},
	})
	must("the model", err)
	quiet := logr.Discard()
	c, err := client.NewOVSDBClient(tables, client.WithEndpoint(endpoint), client.WithLogger(&quiet),
		client.WithReconnect(timeout, backoff.NewConstantBackOff(100*time.Millisecond)))
	must("a client", err)
	must("connect", c.Connect(context.Background()))
	return c
}

// commit runs operations in one transaction and returns its results.
func commit(c client.Client, operations []ovsdb.Operation, err error) ([]ovsdb.OperationResult, error) {
	must("operations", err)
	results, err := c.Transact(context.Background(), operations...)
	must("transact", err)
	failed, err := ovsdb.CheckOperationResults(results, operations)
	for _, one := range failed {
		err = fmt.Errorf("%w: %v", err, one)
	}
	return results, err
}

// plain renders a value from the wire or from a model the same way: sets and maps sorted, one element like a scalar.
func plain(value any) string {
	switch v := value.(type) {
	case ovsdb.OvsSet:
		return plain(v.GoSet)
	case ovsdb.OvsMap:
		return plain(v.GoMap)
	case ovsdb.UUID:
		return v.GoUUID
	}
	r := reflect.ValueOf(value)
	switch r.Kind() {
	case reflect.Pointer:
		if r.IsNil() {
			return "[]"
		}
		return plain(r.Elem().Interface())
	case reflect.Interface:
		return plain(r.Elem().Interface())
	case reflect.Slice:
		items := []string{}
		for i := 0; i < r.Len(); i++ {
			items = append(items, plain(r.Index(i).Interface()))
		}
		if len(items) == 1 {
			return items[0]
		}
		sort.Strings(items)
		return "[" + strings.Join(items, " ") + "]"
	case reflect.Map:
		items := []string{}
		for _, key := range r.MapKeys() {
			items = append(items, plain(key.Interface())+"="+plain(r.MapIndex(key).Interface()))
		}
		sort.Strings(items)
		return "{" + strings.Join(items, " ") + "}"
	}
	return fmt.Sprint(value)
}

// fromCache is one line a row, sorted: column=value for each column of the model.
func fromCache(c client.Client, table string) []string {
	lines := []string{}
	for _, row := range c.Cache().Table(table).Rows() {
		r := reflect.ValueOf(row).Elem()
		cells := []string{}
		for i := 0; i < r.NumField(); i++ {
			cells = append(cells, r.Type().Field(i).Tag.Get("ovsdb")+"="+plain(r.Field(i).Interface()))
		}
		sort.Strings(cells)
		lines = append(lines, strings.Join(cells, " "))
	}
	sort.Strings(lines)
	return lines
}

// fromServer is the same for what a select returns.
func fromServer(c client.Client, table string, prototype any) []string {
	results, err := c.Transact(context.Background(), ovsdb.Operation{Op: ovsdb.OperationSelect, Table: table, Where: []ovsdb.Condition{}})
	must("select", err)
	lines := []string{}
	for _, row := range results[0].Rows {
		r := reflect.TypeOf(prototype)
		cells := []string{}
		for i := 0; i < r.NumField(); i++ {
			column := r.Field(i).Tag.Get("ovsdb")
			cells = append(cells, column+"="+plain(row[column]))
		}
		sort.Strings(cells)
		lines = append(lines, strings.Join(cells, " "))
	}
	sort.Strings(lines)
	return lines
}

func cacheEqualsServer(c client.Client, when string) {
	for table, prototype := range map[string]any{"Site": Site{}, "Rack": Rack{}, "Device": Device{}, "Note": Note{}} {
		have, want := []string{}, fromServer(c, table, prototype)
		for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if have = fromCache(c, table); reflect.DeepEqual(have, want) {
				break
			}
		}
		check(reflect.DeepEqual(have, want), fmt.Sprintf("%s: the cache of %s equals the server, %d rows", when, table, len(want)), have, " != ", want)
	}
}

func fill(c client.Client) {
	uplink := "core"
	rows := []model.Model{
		&Device{UUID: "core", Name: "core", Kind: "router", Ports: []int{1, 2, 3}, Weights: map[int]float64{1: 0.5}},
		&Device{UUID: "leaf", Name: "leaf", Kind: "switch", Uplink: &uplink, Peers: map[string]string{"up": "core"}},
		&Rack{UUID: "rack", Name: "r0", Units: 42, Serial: "s\"0", Devices: []string{"core", "leaf"}},
		&Site{Name: "north", Racks: []string{"rack"}, Labels: map[string]string{"k": "v", "é": "\n"}, Altitude: -12.5, Open: true},
		&Note{Text: "first", Levels: []int{3, 1, 2}, Flags: []bool{true, false}},
	}
	operations, err := c.Create(rows...)
	_, err = commit(c, operations, err)
	check(err == nil, "a transaction with references between new rows commits", err)
	cacheEqualsServer(c, "after the first transaction")
}

func change(c client.Client) {
	site := &Site{Name: "north"}
	must("get by index", c.Get(context.Background(), site))
	operations, err := c.Where(site).Mutate(site,
		model.Mutation{Field: &site.Labels, Mutator: ovsdb.MutateOperationInsert, Value: map[string]string{"new": "1"}},
		model.Mutation{Field: &site.Labels, Mutator: ovsdb.MutateOperationDelete, Value: []string{"k"}},
		model.Mutation{Field: &site.Altitude, Mutator: ovsdb.MutateOperationAdd, Value: 1.25})
	_, err = commit(c, operations, err)
	check(err == nil, "mutations of maps and numbers commit", err)
	contact := "alice"
	site.Contact, site.Open = &contact, false
	operations, err = c.Where(site).Update(site, &site.Contact, &site.Open)
	_, err = commit(c, operations, err)
	check(err == nil, "an update of chosen columns commits", err)
	cacheEqualsServer(c, "after changes")

	operations, err = c.Create(&Site{Name: "north"})
	_, err = commit(c, operations, err)
	check(err != nil && strings.Contains(err.Error(), "constraint violation"), "a duplicate index value is an error", err)
	operations, err = c.Create(&Device{Name: "bad", Kind: "router", Ports: []int{1, 2, 3, 4, 5, 6, 7, 8, 9}})
	if err == nil {
		_, err = commit(c, operations, nil)
	}
	check(err != nil, "a set that is too big is an error", err)
	zero, south := 0, &Site{Name: "south"}
	operations, err = c.Where(site).Wait(ovsdb.WaitConditionEqual, &zero, south, &south.Name)
	_, err = commit(c, operations, err)
	check(err != nil && strings.Contains(err.Error(), "timed out"), "a wait that is not fulfilled times out", err)
}

func volume(c, other client.Client) {
	for n := 0; n < 100; n++ {
		operations, err := other.Create(&Note{Text: fmt.Sprintf("n%03d", n), Levels: []int{n, 1000 + n%7}})
		if n%5 == 4 {
			operations = append(operations, ovsdb.Operation{Op: ovsdb.OperationDelete, Table: "Note",
				Where: []ovsdb.Condition{ovsdb.NewCondition("text", ovsdb.ConditionEqual, fmt.Sprintf("n%03d", n-3))}})
		}
		_, err = commit(other, operations, err)
		must("a small transaction", err)
	}
	cacheEqualsServer(c, "after a hundred transactions of another client")
}

func conditional(endpoint string, writer client.Client) {
	c := connect(endpoint)
	defer c.Close()
	note := &Note{}
	monitor := c.NewMonitor(client.WithConditionalTable(note, []model.Condition{
		{Field: &note.Text, Function: ovsdb.ConditionEqual, Value: "n007"},
		{Field: &note.Text, Function: ovsdb.ConditionEqual, Value: "n008"},
	}))
	_, err := c.Monitor(context.Background(), monitor)
	must("conditional monitor", err)
	texts := func() string {
		found := []string{}
		for _, row := range c.Cache().Table("Note").Rows() {
			found = append(found, row.(*Note).Text)
		}
		sort.Strings(found)
		return strings.Join(found, " ")
	}
	until("only rows that match are in the cache", func() bool { return texts() == "n007 n008" })
	rename := func(from, to string) {
		row := &Note{Text: to}
		operations, err := writer.WhereAll(row, model.Condition{Field: &row.Text, Function: ovsdb.ConditionEqual, Value: from}).Update(row, &row.Text)
		_, err = commit(writer, operations, err)
		must("rename", err)
	}
	rename("n007", "elsewhere")
	until("a row that no longer matches disappears", func() bool { return texts() == "n008" })
	rename("elsewhere", "n007")
	until("a row that matches again appears", func() bool { return texts() == "n007 n008" })
}

func restart(c client.Client) {
	fmt.Println("RESTART")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	must("the suite answers", err)
	until("the client connects again after a restart", func() bool {
		return c.Connected() && c.Echo(context.Background()) == nil
	})
	operations, err := c.Create(&Note{Text: "after restart"})
	_, err = commit(c, operations, err)
	check(err == nil, "a transaction after the restart commits", err)
	cacheEqualsServer(c, "after the restart")
}

func remove(c client.Client) {
	operations, err := c.WhereCache(func(site *Site) bool { return site.Name == "north" }).Delete()
	_, err = commit(c, operations, err)
	check(err == nil, "a row is deleted", err)
	until("unreferenced rows disappear", func() bool {
		return c.Cache().Table("Rack").Len() == 0 && c.Cache().Table("Device").Len() == 0
	})
	cacheEqualsServer(c, "after garbage collection")
}

func main() {
	endpoint := os.Args[1]
	c, other := connect(endpoint), connect(endpoint)
	schema, err := json.Marshal(c.Schema())
	check(err == nil && strings.Contains(string(schema), `"Device"`), "the schema is read")
	var added, updated, deleted atomic.Int64
	c.Cache().AddEventHandler(&cache.EventHandlerFuncs{
		AddFunc:    func(string, model.Model) { added.Add(1) },
		UpdateFunc: func(string, model.Model, model.Model) { updated.Add(1) },
		DeleteFunc: func(string, model.Model) { deleted.Add(1) },
	})
	_, err = c.MonitorAll(context.Background())
	must("monitor", err)
	_, err = other.MonitorAll(context.Background())
	must("monitor", err)
	fill(c)
	change(c)
	volume(c, other)
	conditional(endpoint, other)
	restart(c)
	remove(c)
	until("events of every kind came", func() bool { return added.Load() >= 100 && updated.Load() >= 2 && deleted.Load() >= 20 })
	c.Close()
	other.Close()
	if failures > 0 {
		os.Exit(1)
	}
}
