//! Properties that must hold for the encoding of a histogram, from an agent or a run folder.

use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer, V2Serializer};

/// Checks the bytes of a histogram, as an agent sends it or a log of a run folder holds it.
///
/// # Panics
/// A property does not hold.
pub fn histogram(data: &[u8]) {
    let Ok(histogram) = weir_record::decode(data) else {
        return;
    };
    let (mut plain, mut deflated) = (Vec::new(), Vec::new());
    let written = V2Serializer::new().serialize(&histogram, &mut plain);
    written.expect("counts fit, and memory takes them");
    let written = V2DeflateSerializer::new().serialize(&histogram, &mut deflated);
    written.expect("counts fit, and memory takes them");
    for bytes in [plain, deflated] {
        assert_eq!(weir_record::decode(&bytes).as_ref(), Ok(&histogram));
    }
}
