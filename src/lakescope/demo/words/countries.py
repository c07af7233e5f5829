"""Countries of the world with ISO codes, capital, continent and calling code."""

from __future__ import annotations

from typing import NamedTuple


class Country(NamedTuple):
    """One country, spelled as in everyday English."""

    name: str
    iso2: str
    iso3: str
    capital: str
    continent: str
    calling: str


_LINES = """
Afghanistan|AF|AFG|Kabul|Asia|93
Albania|AL|ALB|Tirana|Europe|355
Algeria|DZ|DZA|Algiers|Africa|213
Andorra|AD|AND|Andorra la Vella|Europe|376
Angola|AO|AGO|Luanda|Africa|244
Argentina|AR|ARG|Buenos Aires|South America|54
Armenia|AM|ARM|Yerevan|Asia|374
Australia|AU|AUS|Canberra|Oceania|61
Austria|AT|AUT|Vienna|Europe|43
Azerbaijan|AZ|AZE|Baku|Asia|994
Bahamas|BS|BHS|Nassau|North America|1242
Bahrain|BH|BHR|Manama|Asia|973
Bangladesh|BD|BGD|Dhaka|Asia|880
Barbados|BB|BRB|Bridgetown|North America|1246
Belarus|BY|BLR|Minsk|Europe|375
Belgium|BE|BEL|Brussels|Europe|32
Belize|BZ|BLZ|Belmopan|North America|501
Benin|BJ|BEN|Porto-Novo|Africa|229
Bhutan|BT|BTN|Thimphu|Asia|975
Bolivia|BO|BOL|Sucre|South America|591
Bosnia and Herzegovina|BA|BIH|Sarajevo|Europe|387
Botswana|BW|BWA|Gaborone|Africa|267
Brazil|BR|BRA|Brasília|South America|55
Brunei|BN|BRN|Bandar Seri Begawan|Asia|673
Bulgaria|BG|BGR|Sofia|Europe|359
Burkina Faso|BF|BFA|Ouagadougou|Africa|226
Burundi|BI|BDI|Gitega|Africa|257
Cambodia|KH|KHM|Phnom Penh|Asia|855
Cameroon|CM|CMR|Yaoundé|Africa|237
Canada|CA|CAN|Ottawa|North America|1
Cape Verde|CV|CPV|Praia|Africa|238
Chad|TD|TCD|N'Djamena|Africa|235
Chile|CL|CHL|Santiago|South America|56
China|CN|CHN|Beijing|Asia|86
Colombia|CO|COL|Bogotá|South America|57
Comoros|KM|COM|Moroni|Africa|269
Costa Rica|CR|CRI|San José|North America|506
Croatia|HR|HRV|Zagreb|Europe|385
Cuba|CU|CUB|Havana|North America|53
Cyprus|CY|CYP|Nicosia|Europe|357
Czechia|CZ|CZE|Prague|Europe|420
Côte d'Ivoire|CI|CIV|Yamoussoukro|Africa|225
Denmark|DK|DNK|Copenhagen|Europe|45
Djibouti|DJ|DJI|Djibouti|Africa|253
Dominican Republic|DO|DOM|Santo Domingo|North America|1809
Ecuador|EC|ECU|Quito|South America|593
Egypt|EG|EGY|Cairo|Africa|20
El Salvador|SV|SLV|San Salvador|North America|503
Eritrea|ER|ERI|Asmara|Africa|291
Estonia|EE|EST|Tallinn|Europe|372
Eswatini|SZ|SWZ|Mbabane|Africa|268
Ethiopia|ET|ETH|Addis Ababa|Africa|251
Fiji|FJ|FJI|Suva|Oceania|679
Finland|FI|FIN|Helsinki|Europe|358
France|FR|FRA|Paris|Europe|33
Gabon|GA|GAB|Libreville|Africa|241
Gambia|GM|GMB|Banjul|Africa|220
Georgia|GE|GEO|Tbilisi|Asia|995
Germany|DE|DEU|Berlin|Europe|49
Ghana|GH|GHA|Accra|Africa|233
Greece|GR|GRC|Athens|Europe|30
Guatemala|GT|GTM|Guatemala City|North America|502
Guinea|GN|GIN|Conakry|Africa|224
Guyana|GY|GUY|Georgetown|South America|592
Haiti|HT|HTI|Port-au-Prince|North America|509
Honduras|HN|HND|Tegucigalpa|North America|504
Hungary|HU|HUN|Budapest|Europe|36
Iceland|IS|ISL|Reykjavík|Europe|354
India|IN|IND|New Delhi|Asia|91
Indonesia|ID|IDN|Jakarta|Asia|62
Iran|IR|IRN|Tehran|Asia|98
Iraq|IQ|IRQ|Baghdad|Asia|964
Ireland|IE|IRL|Dublin|Europe|353
Israel|IL|ISR|Jerusalem|Asia|972
Italy|IT|ITA|Rome|Europe|39
Jamaica|JM|JAM|Kingston|North America|1876
Japan|JP|JPN|Tokyo|Asia|81
Jordan|JO|JOR|Amman|Asia|962
Kazakhstan|KZ|KAZ|Astana|Asia|7
Kenya|KE|KEN|Nairobi|Africa|254
Kiribati|KI|KIR|South Tarawa|Oceania|686
Kuwait|KW|KWT|Kuwait City|Asia|965
Kyrgyzstan|KG|KGZ|Bishkek|Asia|996
Laos|LA|LAO|Vientiane|Asia|856
Latvia|LV|LVA|Riga|Europe|371
Lebanon|LB|LBN|Beirut|Asia|961
Lesotho|LS|LSO|Maseru|Africa|266
Liberia|LR|LBR|Monrovia|Africa|231
Libya|LY|LBY|Tripoli|Africa|218
Liechtenstein|LI|LIE|Vaduz|Europe|423
Lithuania|LT|LTU|Vilnius|Europe|370
Luxembourg|LU|LUX|Luxembourg|Europe|352
Madagascar|MG|MDG|Antananarivo|Africa|261
Malawi|MW|MWI|Lilongwe|Africa|265
Malaysia|MY|MYS|Kuala Lumpur|Asia|60
Maldives|MV|MDV|Malé|Asia|960
Mali|ML|MLI|Bamako|Africa|223
Malta|MT|MLT|Valletta|Europe|356
Mauritania|MR|MRT|Nouakchott|Africa|222
Mauritius|MU|MUS|Port Louis|Africa|230
Mexico|MX|MEX|Mexico City|North America|52
Moldova|MD|MDA|Chișinău|Europe|373
Monaco|MC|MCO|Monaco|Europe|377
Mongolia|MN|MNG|Ulaanbaatar|Asia|976
Montenegro|ME|MNE|Podgorica|Europe|382
Morocco|MA|MAR|Rabat|Africa|212
Mozambique|MZ|MOZ|Maputo|Africa|258
Myanmar|MM|MMR|Naypyidaw|Asia|95
Namibia|NA|NAM|Windhoek|Africa|264
Nepal|NP|NPL|Kathmandu|Asia|977
Netherlands|NL|NLD|Amsterdam|Europe|31
New Zealand|NZ|NZL|Wellington|Oceania|64
Nicaragua|NI|NIC|Managua|North America|505
Niger|NE|NER|Niamey|Africa|227
Nigeria|NG|NGA|Abuja|Africa|234
North Macedonia|MK|MKD|Skopje|Europe|389
Norway|NO|NOR|Oslo|Europe|47
Oman|OM|OMN|Muscat|Asia|968
Pakistan|PK|PAK|Islamabad|Asia|92
Panama|PA|PAN|Panama City|North America|507
Papua New Guinea|PG|PNG|Port Moresby|Oceania|675
Paraguay|PY|PRY|Asunción|South America|595
Peru|PE|PER|Lima|South America|51
Philippines|PH|PHL|Manila|Asia|63
Poland|PL|POL|Warsaw|Europe|48
Portugal|PT|PRT|Lisbon|Europe|351
Qatar|QA|QAT|Doha|Asia|974
Romania|RO|ROU|Bucharest|Europe|40
Russia|RU|RUS|Moscow|Europe|7
Rwanda|RW|RWA|Kigali|Africa|250
Samoa|WS|WSM|Apia|Oceania|685
San Marino|SM|SMR|San Marino|Europe|378
Saudi Arabia|SA|SAU|Riyadh|Asia|966
Senegal|SN|SEN|Dakar|Africa|221
Serbia|RS|SRB|Belgrade|Europe|381
Sierra Leone|SL|SLE|Freetown|Africa|232
Singapore|SG|SGP|Singapore|Asia|65
Slovakia|SK|SVK|Bratislava|Europe|421
Slovenia|SI|SVN|Ljubljana|Europe|386
Somalia|SO|SOM|Mogadishu|Africa|252
South Africa|ZA|ZAF|Pretoria|Africa|27
South Korea|KR|KOR|Seoul|Asia|82
Spain|ES|ESP|Madrid|Europe|34
Sri Lanka|LK|LKA|Colombo|Asia|94
Sudan|SD|SDN|Khartoum|Africa|249
Suriname|SR|SUR|Paramaribo|South America|597
Sweden|SE|SWE|Stockholm|Europe|46
Switzerland|CH|CHE|Bern|Europe|41
Syria|SY|SYR|Damascus|Asia|963
São Tomé and Príncipe|ST|STP|São Tomé|Africa|239
Tajikistan|TJ|TJK|Dushanbe|Asia|992
Tanzania|TZ|TZA|Dodoma|Africa|255
Thailand|TH|THA|Bangkok|Asia|66
Togo|TG|TGO|Lomé|Africa|228
Tonga|TO|TON|Nukuʻalofa|Oceania|676
Trinidad and Tobago|TT|TTO|Port of Spain|North America|1868
Tunisia|TN|TUN|Tunis|Africa|216
Turkmenistan|TM|TKM|Ashgabat|Asia|993
Türkiye|TR|TUR|Ankara|Asia|90
Uganda|UG|UGA|Kampala|Africa|256
Ukraine|UA|UKR|Kyiv|Europe|380
United Arab Emirates|AE|ARE|Abu Dhabi|Asia|971
United Kingdom|GB|GBR|London|Europe|44
United States|US|USA|Washington|North America|1
Uruguay|UY|URY|Montevideo|South America|598
Uzbekistan|UZ|UZB|Tashkent|Asia|998
Vanuatu|VU|VUT|Port Vila|Oceania|678
Venezuela|VE|VEN|Caracas|South America|58
Vietnam|VN|VNM|Hanoi|Asia|84
Yemen|YE|YEM|Sanaa|Asia|967
Zambia|ZM|ZMB|Lusaka|Africa|260
Zimbabwe|ZW|ZWE|Harare|Africa|263
"""

COUNTRIES: tuple[Country, ...] = tuple(Country(*line.split("|")) for line in _LINES.split("\n") if line)
