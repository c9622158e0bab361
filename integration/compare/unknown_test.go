package compare

import "testing"

// UnknownNames returns the names that two servers say they do not know if they are different, and
// nothing for any other pair of answers.
func TestUnknownNames(t *testing.T) {
	answer := func(status int, message string) Answer {
		return Answer{Status: status, Body: []byte(`{"error":{"code":400,"message":"` + message + `"}}`)}
	}
	a, b := answer(400, "No such name for 'tagv': 'RAW'"), answer(400, "No such name for 'tagk': 'it's'")
	theirs, ours, ok := UnknownNames(a, b)
	want1, want2 := (UnknownName{"tagv", "RAW"}), (UnknownName{"tagk", "it's"})
	if !ok || theirs != want1 || ours != want2 {
		t.Errorf("got %v, %v, %t, want %v and %v", theirs, ours, ok, want1, want2)
	}
	for name, other := range map[string]Answer{
		"the same name":    a,
		"another status":   answer(404, "No such name for 'tagv': 'b'"),
		"another error":    answer(400, "No such rule"),
		"no name":          answer(400, "No such name for 'tagv'"),
		"text before":      answer(400, "net.opentsdb.uid.NoSuchUniqueName: No such name for 'tagv': 'b'"),
		"no error":         {Status: 200, Body: []byte("[]")},
		"an unknown place": answer(400, "No such name for 'tsuid': 'b'"),
	} {
		if _, _, ok := UnknownNames(a, other); ok {
			t.Errorf("%s: %s passes for another unknown name", name, other.Body)
		}
		if _, _, ok := UnknownNames(other, a); ok {
			t.Errorf("%s: %s passes for another unknown name", name, other.Body)
		}
	}
}
