package calls

import "testing"

func TestSecurity_principal(t *testing.T) {
	s := Security{RegionServer: "hbase/_HOST@R", Master: "master/_HOST@R"}
	for _, tc := range []struct {
		addr, want string
		master     bool
	}{
		{"Region1.Example.org:16020", "hbase/region1.example.org@R", false},
		{"m.:16000", "master/m@R", true},
	} {
		if got := s.principal(t.Context(), tc.addr, tc.master); got != tc.want {
			t.Errorf("%s, master %t: got %s, want %s", tc.addr, tc.master, got, tc.want)
		}
	}
}
