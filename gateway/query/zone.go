package query

import (
	"time"

	"downpour/encoding/zones"
)

// zone is a time zone by its IANA name.
type zone struct {
	name     string
	location *time.Location
}

// shortZones are Java's three-letter zone names that the IANA database does not
// have, or has with another meaning. Source: java.time.ZoneId.SHORT_IDS.
var shortZones = map[string]string{
	"ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
	"ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo",
	"BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
	"CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
	"ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
	"JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
	"NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
	"PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
	"VST": "Asia/Ho_Chi_Minh",
}

// lookUpZone finds a zone by its name in Java.
// Source: DateTime.timezones.
func lookUpZone(name string) (zone, bool) {
	if full, ok := shortZones[name]; ok {
		name = full
	}

	// Factory is for clocks that were never set.
	if name == "" || name == "Factory" {
		return zone{}, false
	}

	loc, err := zones.Load(name)
	return zone{name, loc}, err == nil
}

// Zone returns the time zone that has a name in Java; ok is false if none has.
func Zone(name string) (zone *time.Location, ok bool) {
	z, ok := lookUpZone(name)
	return z.location, ok
}
