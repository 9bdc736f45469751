package main

// Rows of schemas/inventory-1.ovsschema as libovsdb maps them.

// Site is a root table with every kind of plain column.
type Site struct {
	UUID     string            `ovsdb:"_uuid"`
	Name     string            `ovsdb:"name"`
	Racks    []string          `ovsdb:"racks"`
	Labels   map[string]string `ovsdb:"labels"`
	Altitude float64           `ovsdb:"altitude"`
	Open     bool              `ovsdb:"open"`
	Contact  *string           `ovsdb:"contact"`
}

// Rack is collected when no site refers to it.
type Rack struct {
	UUID    string   `ovsdb:"_uuid"`
	Name    string   `ovsdb:"name"`
	Units   int      `ovsdb:"units"`
	Devices []string `ovsdb:"devices"`
	Serial  string   `ovsdb:"serial"`
}

// Device holds weak references to other devices.
type Device struct {
	UUID    string            `ovsdb:"_uuid"`
	Name    string            `ovsdb:"name"`
	Kind    string            `ovsdb:"kind"`
	Ports   []int             `ovsdb:"ports"`
	Weights map[int]float64   `ovsdb:"weights"`
	Uplink  *string           `ovsdb:"uplink"`
	Peers   map[string]string `ovsdb:"peers"`
}

// Note stands alone.
type Note struct {
	UUID   string `ovsdb:"_uuid"`
	Text   string `ovsdb:"text"`
	Levels []int  `ovsdb:"levels"`
	Flags  []bool `ovsdb:"flags"`
}
